"""Normalizers: each rewrites text before it is cut into words, as tokenizer.json names them, and keeps the alignment.

Which Unicode version each rule follows is the reference library's choice; csrc/unicode.h says which.
"""

from __future__ import annotations

import base64
import binascii
from collections import abc
from typing import Any

from cygnet._core import _unicode
from cygnet._core._charsmap import Charsmap
from cygnet.errors import TokenizerError
from cygnet.tokenizers.aligned import AlignedText
from cygnet.tokenizers.byte_alphabet import BYTE_TO_CHAR
from cygnet.tokenizers.components import Normalizer
from cygnet.tokenizers.expressions import Expression
from cygnet.tokenizers.json_fields import Fields
from cygnet.tokenizers.json_stages import build, children

NMT_REMOVED = frozenset(map(chr, [*range(0x01, 0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F]))
NMT_SPACES = frozenset("\t\n\f\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd")


class Sequence:
    """Normalizers one after another."""

    def __init__(self, normalizers: abc.Sequence[Normalizer]):
        self.normalizers = list(normalizers)

    def normalize(self, text: AlignedText) -> AlignedText:
        for normalizer in self.normalizers:
            text = normalizer.normalize(text)
        return text


class UnicodeForm:
    """A Unicode normalisation form: NFC, NFD, NFKC or NFKD (UAX #15)."""

    def __init__(self, form: str):
        self.form = form
        self.compatibility = "K" in form
        self.composed = form.endswith("C")

    def normalize(self, text: AlignedText) -> AlignedText:
        if text.text.isascii():
            return text
        changes = _unicode.decompose(text.text, self.compatibility)
        return text.transform(_unicode.compose(changes) if self.composed else changes)


class Lowercase:
    """Each character in its full lower-case form, without regard to its neighbours."""

    def normalize(self, text: AlignedText) -> AlignedText:
        if text.text.isascii():
            return text.respelled(text.text.lower())
        return text.map(_unicode.lower)


class Strip:
    """White space taken off the ends."""

    def __init__(self, left: bool = True, right: bool = True):
        self.left = left
        self.right = right

    def normalize(self, text: AlignedText) -> AlignedText:
        start, end = 0, len(text)
        while self.left and start < end and _unicode.is_space(text.text[start]):
            start += 1
        while self.right and end > start and _unicode.is_space(text.text[end - 1]):
            end -= 1
        return text.stripped(start, end)


class StripAccents:
    """Combining marks dropped."""

    def normalize(self, text: AlignedText) -> AlignedText:
        return text if text.text.isascii() else text.filter(lambda c: not _unicode.is_mark(c))


class Replace:
    """Every match of a string or of a regular expression replaced by a fixed string."""

    def __init__(self, pattern: Expression, content: str):
        self.pattern = pattern
        self.content = content

    def normalize(self, text: AlignedText) -> AlignedText:
        ranges = self.pattern.spans(text.text)
        return text.replace(ranges, self.content) if ranges and text.text else text


class Prepend:
    """A string put before text that is not empty."""

    def __init__(self, prefix: str):
        self.prefix = prefix

    def normalize(self, text: AlignedText) -> AlignedText:
        return text.prepend(self.prefix)


class Nmt:
    """The clean-up of control characters and odd spaces that SentencePiece's nmt rules begin with."""

    def normalize(self, text: AlignedText) -> AlignedText:
        return text.filter(lambda c: c not in NMT_REMOVED).map(lambda c: " " if c in NMT_SPACES else c)


class ByteLevel:
    """Every UTF-8 byte spelled in the byte-level alphabet."""

    def normalize(self, text: AlignedText) -> AlignedText:
        return text.map(lambda c: "".join([BYTE_TO_CHAR[b] for b in c.encode()]))


class BertNormalizer:
    """What BERT does to text before splitting it.

    Parameters
    ----------
    clean_text : bool
        Drop control characters, make every white space a plain space.
    handle_chinese_chars : bool
        Put spaces around ideographs.
    strip_accents : bool or None
        Drop nonspacing marks after NFD; None means as `lowercase`.
    lowercase : bool
    """

    def __init__(self, clean_text: bool = True, handle_chinese_chars: bool = True, strip_accents: bool | None = None, lowercase: bool = True):
        self.clean_text = clean_text
        self.handle_chinese_chars = handle_chinese_chars
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        self.lowercase = lowercase

    def normalize(self, text: AlignedText) -> AlignedText:
        if self.clean_text:
            text = text.filter(lambda c: not _unicode.is_bert_control(c)).map(lambda c: " " if _unicode.is_space(c) else c)
        if self.handle_chinese_chars:
            text = text.map(lambda c: f" {c} " if _unicode.is_bert_ideograph(c) else c)
        if self.strip_accents and not text.text.isascii():
            text = text.transform(_unicode.decompose(text.text, False)).filter(lambda c: not _unicode.is_bert_accent(c))
        return Lowercase().normalize(text) if self.lowercase else text


class Precompiled:
    """A SentencePiece character map, applied as the tokenizers library does: to grapheme clusters, then to single characters.

    A cluster shorter than six bytes is replaced by the rule for its shortest known prefix; otherwise each of its characters is looked
    up alone.

    Parameters
    ----------
    charsmap : bytes
        The precompiled_charsmap of a SentencePiece model.
    """

    def __init__(self, charsmap: bytes, where: str = "precompiled_charsmap"):
        self.charsmap = Charsmap(charsmap, where)

    def normalize(self, text: AlignedText) -> AlignedText:
        changes: list[tuple[str, int]] = []
        modified = False
        starts = _unicode.grapheme_starts(text.text)
        for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
            cluster = text.text[start:end]
            whole = self.charsmap.shortest(cluster) if len(cluster) < 6 and len(cluster.encode()) < 6 else None
            for part in cluster if whole is None else [cluster]:
                replacement = self.charsmap.shortest(part) if whole is None else whole
                if replacement is None:
                    changes.append((part, 0))
                    continue
                modified = True
                append_replacement(changes, len(part), replacement)
        return text.transform(changes) if modified else text


def append_replacement(changes: list[tuple[str, int]], old_length: int, new: str) -> None:
    """Adds the changes that put `new` in the place of `old_length` characters, in the reference library's own accounting."""
    changes += [(c, 0) for c in new]
    difference = len(new) - old_length
    if difference > 0:
        changes[-difference:] = [(c, 1) for c, _ in changes[-difference:]]
    elif difference < 0 and changes:
        changes[-1] = changes[-1][0], changes[-1][1] + difference


def from_config(config: Any, where: str) -> Normalizer | None:
    """Normalizer from its object in tokenizer.json.

    Raises
    ------
    TokenizerError
        Where a field is damaged or the component is unknown; names the place.
    """
    return build(NORMALIZERS, config, where)


def _bert(fields: Fields) -> BertNormalizer:
    return BertNormalizer(
        fields.flag("clean_text", True), fields.flag("handle_chinese_chars", True), fields.flag("strip_accents", None), fields.flag("lowercase", True)
    )


def _replace(fields: Fields) -> Replace:
    pattern = fields.pattern()
    return Replace(Expression(pattern, literal=True) if isinstance(pattern, str) else pattern, fields.string("content"))


def _precompiled(fields: Fields) -> Precompiled:
    where = f"{fields.where}.precompiled_charsmap"
    try:
        return Precompiled(base64.b64decode(fields.string("precompiled_charsmap", ""), validate=True), where)
    except binascii.Error as error:
        raise TokenizerError(f"{where} is no valid base64: {error}") from None


NORMALIZERS = {
    "BertNormalizer": _bert,
    "ByteLevel": lambda f: ByteLevel(),
    "Lowercase": lambda f: Lowercase(),
    "NFC": lambda f: UnicodeForm("NFC"),
    "NFD": lambda f: UnicodeForm("NFD"),
    "NFKC": lambda f: UnicodeForm("NFKC"),
    "NFKD": lambda f: UnicodeForm("NFKD"),
    "Nmt": lambda f: Nmt(),
    "Precompiled": _precompiled,
    "Prepend": lambda f: Prepend(f.string("prepend")),
    "Replace": _replace,
    "Sequence": lambda f: Sequence(children(NORMALIZERS, f, "normalizers")),
    "Strip": lambda f: Strip(f.flag("strip_left", True), f.flag("strip_right", True)),
    "StripAccents": lambda f: StripAccents(),
}
