"""The word splitting of llama.cpp for BERT: the stage that WordPiece has a lane for, apart from those that need NumPy."""

from __future__ import annotations

from cygnet._core import _unicode
from cygnet.tokenizers.aligned import AlignedText

SPACE_SIGN = "▁"


class BertWords:
    """Words as llama.cpp cuts them for BERT: normalised, a space sign before each.

    It knows accents only as what NFD puts after a base, so that decomposition keeps the first character alone.

    Parameters
    ----------
    lowercase, strip_accents : bool
    """

    unicode_15 = True

    def __init__(self, lowercase: bool, strip_accents: bool):
        self.lowercase = lowercase
        self.strip_accents = strip_accents

    def split(self, text: AlignedText) -> list[AlignedText]:
        words: list[AlignedText] = []
        chars: list[str] = []
        spans: list[tuple[int, int]] = []

        def finish() -> None:
            if chars:
                words.append(AlignedText(SPACE_SIGN + "".join(chars), [spans[0], *spans]))
                chars.clear()
                spans.clear()

        for char, span in zip(text.text, text.spans, strict=True):
            if self.strip_accents:
                char = _unicode.decompose(char, False)[0][0]
            kind = "Cn" if _unicode.is_new_in_16(char) else _unicode.category(char)
            if _unicode.is_space(char):
                finish()
                continue
            if char in "\0\ufffd" or kind in ("Cc", "Cf", "Co") or (self.strip_accents and kind[0] == "M"):
                continue
            alone = kind[0] == "P" or (char < "\x7f" and kind[0] == "S") or _unicode.is_bert_ideograph(char)
            if alone:
                finish()
            chars.append(_unicode.lower(char)[0] if self.lowercase and kind != "Cn" else char)
            spans.append(span)
            if alone:
                finish()
        finish()
        return words
