"""The bytes that each token adds to a text: what masks of grammars are computed from."""

from __future__ import annotations

from cygnet.errors import TokenizerError
from cygnet.tokenizers.byte_alphabet import CHAR_TO_BYTE
from cygnet.tokenizers.decoders import BYTE_TOKEN, ByteLevel, Sequence
from cygnet.tokenizers.tokenizer import Tokenizer


def token_bytes(tokenizer: Tokenizer, size: int) -> list[bytes]:
    """What ids 0 to size - 1 stand for in the middle of a text; b"" for special tokens and ids without one.

    Parameters
    ----------
    tokenizer : Tokenizer
    size : int
        Usually the vocabulary of the model, which may be larger than that of the tokenizer.

    Raises
    ------
    TokenizerError
        If a token has no bytes of its own because the decoder joins words by a rule.

    Examples
    --------
    >>> from cygnet.tokenizers import Tokenizer
    >>> tokenizer = Tokenizer.from_json({
    ...     "model": {"type": "BPE", "vocab": {"a": 0, "Ġ": 1, "Ġa": 2}, "merges": ["Ġ a"]}, "decoder": {"type": "ByteLevel"},
    ... })
    >>> token_bytes(tokenizer, 4)
    [b'a', b' ', b' a', b'']
    """
    text_of = _reader(tokenizer)
    special = tokenizer.added.special_contents
    tokens = [tokenizer.id_to_token(i) for i in range(size)]
    return [b"" if token is None or token in special else text_of(token) for token in tokens]


def _reader(tokenizer: Tokenizer):
    """The function from a token to its bytes."""
    decoder = tokenizer.decoder
    if hasattr(decoder, "bytes_of"):
        return decoder.bytes_of
    if any(isinstance(part, ByteLevel) for part in (decoder.decoders if isinstance(decoder, Sequence) else [decoder])):
        return _byte_level
    anchor = next((token for token in map(tokenizer.id_to_token, range(tokenizer.vocab_size)) if token and token.isascii() and token.isalpha()), None)
    if decoder is None or anchor is None:
        raise TokenizerError("structured output needs a tokenizer whose decoder says what each token stands for")
    return _Between(decoder, anchor)


def _byte_level(token: str) -> bytes:
    """As the byte-level decoder reads a token: GPT-2's alphabet, or the token's own UTF-8 where a character is not of it."""
    try:
        return bytes([CHAR_TO_BYTE[c] for c in token])
    except KeyError:
        return token.encode()


class _Between:
    """Reads a token as the decoder does between two plain ones."""

    def __init__(self, decoder, anchor: str):
        self._decoder = decoder
        self._anchor = anchor
        self._alone = decoder.decode([anchor])
        both = decoder.decode([anchor, anchor])
        if both != self._alone * 2 or not both:
            raise TokenizerError("structured output needs a tokenizer whose tokens join without a rule of their own; this one spaces words by rule")

    def __call__(self, token: str) -> bytes:
        if BYTE_TOKEN.fullmatch(token):
            return bytes([int(token[3:5], 16)])
        text = self._decoder.decode([self._anchor, token, self._anchor])
        return text[len(self._alone) : len(text) - len(self._alone)].encode()
