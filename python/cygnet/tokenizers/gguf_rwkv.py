"""RWKV's World tokenizer as GGUF files hold it.

Tokens are bytes, written with the escapes of Python; of those that begin what is left of a text the longest is taken.
"""

from __future__ import annotations

import re

from cygnet._core._vocabulary import Vocabulary
from cygnet._core._wordpiece import GreedyLane, WordPieces
from cygnet.errors import TokenizerError
from cygnet.tokenizers.bpe import by_characters
from cygnet.tokenizers.components import Normalizer, Piece, PreTokenizer
from cygnet.tokenizers.gguf_stages import GgufDecoder
from cygnet.tokenizers.gguf_vocab import GgufVocab
from cygnet.tokenizers.wordpiece import NO_LIMIT

ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|([^x]))", re.DOTALL)
NAMED = {b"t": b"\t", b"n": b"\n", b"r": b"\r"}


def unescaped(token: str) -> bytes | None:
    """The bytes that a token is written for, as Python writes bytes; None where it holds what is no escape."""
    data = token.encode("utf-8", "surrogateescape")
    if b"\\" not in data:
        return data
    if b"\\" in ESCAPE.sub(b"", data):
        return None
    return ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()) if escape[1] else NAMED.get(escape[2], escape[2]), data)


class LongestBytes:
    """Greedy longest match over the bytes of a text.

    Parameters
    ----------
    vocab : GgufVocab

    Raises
    ------
    TokenizerError
        Where a token is not written as it should be, or a byte is no token, so that a text could not be covered.
    """

    def __init__(self, vocab: GgufVocab):
        self.ids = vocab.ids
        self.names = vocab.tokens
        self.vocab_size = len(vocab.tokens)
        self.data = [unescaped(token) for token in vocab.tokens]
        if None in self.data:
            wrong = self.data.index(None)
            raise TokenizerError(f"{vocab.where}: tokenizer.ggml.tokens[{wrong}] {vocab.tokens[wrong][:40]!r} holds a wrong escape")
        missing = {bytes([byte]) for byte in range(256)}.difference(self.data)
        if missing:
            raise TokenizerError(f"{vocab.where}: tokenizer.ggml.tokens lacks the byte {min(missing)!r}; a vocabulary of kind rwkv needs all 256")
        spelled = {data.decode("utf-8", "surrogateescape"): i for i, data in enumerate(self.data)}
        self.pieces = WordPieces(Vocabulary(spelled), "", "", NO_LIMIT)

    def tokenize(self, text: str) -> list[Piece]:
        ids = [token_id for token_id, _, _ in self.pieces.pieces(text)]
        return by_characters(ids, [len(self.data[i]) for i in ids], text)

    def token_to_id(self, token: str) -> int | None:
        return self.ids.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        return self.names[token_id] if 0 <= token_id < len(self.names) else None

    def fast_lane(self, normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> GreedyLane | None:
        return GreedyLane(self.pieces) if normalizer is None and pre_tokenizer is None else None


class RwkvDecoder(GgufDecoder):
    """The bytes of the tokens, of whatever type, one after another."""

    def __init__(self, vocab: GgufVocab):
        super().__init__(vocab.ids, vocab.types, byte_level=False, escape_spaces=False, strip_first=False, clean_spaces=False)

    def bytes_of(self, token: str) -> bytes:
        return unescaped(token) or b""
