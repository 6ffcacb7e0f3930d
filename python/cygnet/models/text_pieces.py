"""Long and many-lined texts cut into pieces that a translation model can take, and put together again.

Lines are translated one by one, so that a text keeps its shape; a line beyond the model's limit is cut between sentences, a sentence beyond it
between words, and a word beyond it between tokens. Nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_LINE_BREAK = re.compile(r"(\r\n|\n|\r|\v|\f|\x1c|\x1d|\x1e|\x85|\u2028|\u2029)")
# Behind a mark that ends a sentence: with white space after it, or directly for scripts that write none.
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'»”’)\]]*\s+|(?<=[。！？])|(?<=[।؟۔])\s*")
_WORD = re.compile(r"(?<=[,;:、，；])\s*|\s+")


def split_lines(text: str) -> list[tuple[str, str]]:
    """Lines with the break that ends each ("" for the last); joining all of them gives the text.

    >>> split_lines("a\\r\\n\\nb")
    [('a', '\\r\\n'), ('', '\\n'), ('b', '')]
    """
    parts = _LINE_BREAK.split(text)
    return list(zip(parts[::2], [*parts[1::2], ""], strict=True))


def split_line(line: str, limit: int, count: Callable[[str], int], cut: Callable[[str, int], int]) -> list[tuple[str, str]]:
    """Pieces of at most `limit` tokens with the white space behind each; joining all of them gives the line.

    Parameters
    ----------
    line : str
    limit : int
        Largest number of tokens of a piece, at least 1.
    count : function of str -> int
        Tokens of a text.
    cut : function of (str, int) -> int
        Where a text is to be cut so that its first part has at most so many tokens; at least 1.
    """
    if count(line) <= limit:
        return [(line, "")]
    pieces: list[tuple[str, str]] = []
    for sentence, space in _packed(_divide(line, _SENTENCE), limit, count):
        if count(sentence) <= limit:
            pieces.append((sentence, space))
            continue
        words = _packed(_divide(sentence, _WORD), limit, count)
        parts = [part for word, gap in words for part in _hard(word, gap, limit, count, cut)]
        pieces += [*parts[:-1], (parts[-1][0], parts[-1][1] + space)]
    return pieces


def _divide(text: str, boundary: re.Pattern) -> list[tuple[str, str]]:
    """The text cut at a boundary: (piece, white space behind it)."""
    pieces = []
    position = 0
    for found in boundary.finditer(text):
        end = found.end() - len(found.group()) + len(found.group().rstrip())
        if end > position:
            pieces.append((text[position:end], text[end : found.end()]))
            position = found.end()
    return [*pieces, (text[position:], "")] if position < len(text) else pieces


def _packed(pieces: list[tuple[str, str]], limit: int, count: Callable[[str], int]) -> list[tuple[str, str]]:
    """Neighbours joined as long as they fit together."""
    packed: list[tuple[str, str]] = []
    for piece, space in pieces:
        if packed and count(packed[-1][0]) + count(piece) <= limit and count(joined := packed[-1][0] + packed[-1][1] + piece) <= limit:
            packed[-1] = (joined, space)
        else:
            packed.append((piece, space))
    return packed


def _hard(word: str, space: str, limit: int, count: Callable[[str], int], cut: Callable[[str, int], int]) -> list[tuple[str, str]]:
    """One unbroken run cut between tokens."""
    parts = []
    while count(word) > limit:
        end = max(1, min(cut(word, limit), len(word) - 1))
        parts.append((word[:end], ""))
        word = word[end:]
    return [*parts, (word, space)]
