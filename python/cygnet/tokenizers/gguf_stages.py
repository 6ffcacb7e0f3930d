"""Stages that only GGUF vocabularies have: llama.cpp's words, its decoder, and BPE that knows whole line breaks."""

from __future__ import annotations

import codecs
import re

import numpy as np

from cygnet._core import _unicode
from cygnet.tokenizers.aligned import AlignedText
from cygnet.tokenizers.bpe import BPE
from cygnet.tokenizers.byte_alphabet import CHAR_TO_BYTE
from cygnet.tokenizers.components import Piece
from cygnet.tokenizers.decoder_base import DecoderBase, Stage
from cygnet.tokenizers.gguf_vocab import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED
from cygnet.tokenizers.unicode_classes import SPACE

SPACE_SIGN = "▁"
NO_SPACE = re.compile(rf"[^{SPACE}]+")
BYTE_TOKEN = re.compile(r"<0x[0-9A-F]{2}>")
CLEANING = ((re.compile(r" (?=[?!.,])"), ""), (re.compile(r" ' "), "'"), (re.compile(r" (?='(?:[sm]|re|ve))"), ""))
# Cleaning looks at most this far around a space.
CLEANING_REACH = 3


class Words:
    """What stands between white space, in lower case if so wanted."""

    unicode_15 = True

    def __init__(self, lowercase: bool):
        self.lowercase = lowercase

    def split(self, text: AlignedText) -> list[AlignedText]:
        if self.lowercase:
            text = text.respelled("".join([c if _unicode.is_new_in_16(c) else _unicode.lower(c)[0] for c in text.text]))
        return list(text.slices(match.span() for match in NO_SPACE.finditer(text.text)))


class GgufBPE(BPE):
    """BPE in which a byte that the vocabulary does not spell keeps its neighbours apart, and then is dropped.

    Attributes
    ----------
    dropped_id : int or None
        What stands for such bytes until then; None where the vocabulary spells all.
    """

    dropped_id: int | None = None

    def _unk_id(self, complete: bool) -> int:
        if complete:
            return -1
        self.dropped_id = len(self.names)
        return self.dropped_id

    def tokenize(self, text: str) -> list[Piece]:
        return [piece for piece in super().tokenize(text) if piece[0] != self.dropped_id]


class LineBPE(GgufBPE):
    """BPE whose vocabulary's runs of line feeds are found whole."""

    def tokenize(self, text: str) -> list[Piece]:
        if not text.strip("\n") and text in self.vocab:
            return [(self.vocab[text], 0, len(text))]
        return super().tokenize(text)

    def fast_lane(self, normalizer, pre_tokenizer) -> None:
        return None


class GgufDecoder(DecoderBase):
    """Tokens back to text by their types.

    Parameters
    ----------
    ids : dict of str to int
    types : (n,) int32 ndarray
    byte_level : bool
        Normal tokens are spelled in the byte-level alphabet, otherwise with space signs.
    escape_spaces : bool
        A space sign in a normal token is a space.
    strip_first : bool
        One space goes from the start of the first token, a hidden one included.
    clean_spaces : bool
        Take out the spaces before punctuation and contractions.
    """

    keeps_hidden = True  # hidden tokens come as empty ones, because the first token counts

    def __init__(self, ids: dict[str, int], types: np.ndarray, byte_level: bool, escape_spaces: bool, strip_first: bool, clean_spaces: bool):
        self.ids = ids
        self.types = types.astype(np.uint8).tobytes()
        self.byte_level = byte_level
        self.escape_spaces = escape_spaces
        self.strip_first = strip_first
        self.clean_spaces = clean_spaces
        # Whether the text is no more than the bytes of the tokens, one after another.
        self.context_free = not (strip_first or clean_spaces)

    def bytes_of(self, token: str) -> bytes:
        """What a token stands for."""
        at = self.ids.get(token)
        kind = None if at is None else self.types[at]
        if kind in (UNKNOWN, CONTROL, USER_DEFINED):
            return token.encode("utf-8", "surrogateescape")
        if kind == BYTE:
            return bytes([int(token[3:5], 16)]) if BYTE_TOKEN.fullmatch(token) else b""
        if kind != NORMAL:
            return b""
        if self.byte_level:
            return b"".join([bytes([CHAR_TO_BYTE[c]]) if c in CHAR_TO_BYTE else unknown_byte(c, token) for c in token])
        if self.escape_spaces:
            token = token.replace(SPACE_SIGN, " ")
        return token.encode("utf-8", "surrogateescape")

    def stage(self) -> Stage:
        return _GgufStage(self)


def unknown_byte(char: str, token: str) -> bytes:
    """What llama.cpp shows for a character outside the byte-level alphabet."""
    return f"[UNK_BYTE_0x{char.encode('utf-8', 'surrogateescape').hex()}{token}]".encode("utf-8", "surrogateescape")


class _GgufStage:
    def __init__(self, decoder: GgufDecoder):
        self._decoder = decoder
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._first = decoder.strip_first
        self._held = ""

    def push(self, token: str) -> list[str]:
        data = self._decoder.bytes_of(token)
        if self._first and data.startswith(b" "):
            data = data[1:]
        self._first = False
        return self._show(self._utf8.decode(data), final=False)

    def finish(self) -> list[str]:
        return self._show(self._utf8.decode(b"", True), final=True)

    def _show(self, text: str, final: bool) -> list[str]:
        if self._decoder.clean_spaces:
            text = self._held + text
            cut = len(text) if final else settled(text)
            text, self._held = clean(text[:cut]), text[cut:]
        return [text] if text else []


def settled(text: str) -> int:
    """Length of the beginning that cleaning can no longer change: it ends in letters or digits only."""
    for end in range(len(text), CLEANING_REACH - 1, -1):
        if text[end - CLEANING_REACH : end].isalnum():
            return end
    return 0


def clean(text: str) -> str:
    """Text without the spaces before punctuation and contractions, by llama.cpp's three rules."""
    for pattern, new in CLEANING:
        text = pattern.sub(new, text)
    return text
