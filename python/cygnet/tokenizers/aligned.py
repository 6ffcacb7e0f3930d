"""Text under normalisation that remembers where it came from.

Every character of the current text carries the (start, end) range of code points of the original that it stands for, so
offsets survive any chain of replacements. Characters, not bytes, are the unit: all rules of the format work on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

Span = tuple[int, int]


class AlignedText:
    """A string and, for each of its characters, the range of the original text that it stands for.

    Parameters
    ----------
    text : str
        The text as it is now.
    spans : list of (int, int), length len(text)
        Start and end of each character in code points of the original text.
    start : int, optional
        Where in the original the stretch begins that the text was made of: what is put in front stands there, even when the first
        characters are gone (default: where its first character stands, 0 for empty text).

    Examples
    --------
    >>> AlignedText.of("ﬁn").transform([("f", 0), ("i", 1), ("n", 0)]).spans
    [(0, 1), (0, 1), (1, 2)]
    """

    __slots__ = ("spans", "start", "text")

    def __init__(self, text: str, spans: list[Span], start: int | None = None):
        self.text = text
        self.spans = spans
        self.start = (spans[0][0] if spans else 0) if start is None else start

    @classmethod
    def of(cls, text: str, start: int = 0) -> AlignedText:
        """Text that stands for itself, beginning at code point `start` of the original."""
        return cls(text, [(i, i + 1) for i in range(start, start + len(text))])

    def __len__(self) -> int:
        return len(self.text)

    def __repr__(self) -> str:
        return f"AlignedText({self.text!r})"

    def original(self, start: int, end: int) -> Span:
        """Range of the original text behind characters start..end of this one; an empty range stays empty."""
        if start >= end:
            at = self.spans[start][0] if start < len(self.spans) else (self.spans[-1][1] if self.spans else 0)
            return at, at
        return self.spans[start][0], self.spans[end - 1][1]

    def slice(self, start: int, end: int) -> AlignedText:
        """Characters start..end as a text of their own, which begins where they do."""
        return AlignedText(self.text[start:end], self.spans[start:end])

    def stripped(self, start: int, end: int) -> AlignedText:
        """The same text without what stands before start and from end on."""
        return AlignedText(self.text[start:end], self.spans[start:end], self.start)

    def respelled(self, text: str) -> AlignedText:
        """Each character replaced by the one of `text` at its place."""
        return AlignedText(text, self.spans, self.start)

    def slices(self, ranges: Iterable[Span]) -> Iterator[AlignedText]:
        """The non-empty ones of the given ranges."""
        for start, end in ranges:
            if start < end:
                yield self.slice(start, end)

    def transform(self, changes: Iterable[tuple[str, int]], removed_at_start: int = 0) -> AlignedText:
        """New text from (character, change) pairs, read against the old one from left to right.

        Change 0 replaces the next old character, a positive change inserts (the new character shares the range of the old one
        just passed), and -n replaces the next old character and drops the n after it.
        """
        old, position = self.spans, removed_at_start
        text: list[str] = []
        spans: list[Span] = []
        for char, change in changes:
            text.append(char)
            if change > 0:
                spans.append(old[position - 1] if position else (self.start, self.start))
            else:
                spans.append(old[position])
                position += 1 - change
        return AlignedText("".join(text), spans, self.start)

    def map(self, function: Callable[[str], str]) -> AlignedText:
        """Each character replaced by function(character), of any length, all of it standing for that character."""
        parts = [function(char) for char in self.text]
        return AlignedText("".join(parts), [span for part, span in zip(parts, self.spans, strict=True) for _ in part], self.start)

    def filter(self, keep: Callable[[str], bool]) -> AlignedText:
        """Only the characters for which keep(character) holds."""
        kept = [i for i, char in enumerate(self.text) if keep(char)]
        return AlignedText("".join([self.text[i] for i in kept]), [self.spans[i] for i in kept], self.start)

    def replace(self, ranges: Iterable[Span], content: str) -> AlignedText:
        """Each (start, end) range, ascending and apart, replaced by content that stands for the last character of the range."""
        text: list[str] = []
        spans: list[Span] = []
        done = 0
        for start, end in ranges:
            text += (self.text[done:start], content)
            spans += self.spans[done:start]
            spans += [self.spans[end - 1] if end else (self.start, self.start)] * len(content)
            done = end
        return AlignedText("".join([*text, self.text[done:]]), spans + self.spans[done:], self.start)

    def prepend(self, prefix: str) -> AlignedText:
        """Prefix before the first character, standing for it; empty text stays empty."""
        if not self.text:
            return self
        return AlignedText(prefix + self.text, [self.spans[0]] * len(prefix) + self.spans, self.start)

    def append(self, suffix: str) -> AlignedText:
        """Suffix after the last character, standing for it; empty text stays empty."""
        if not self.text:
            return self
        return AlignedText(self.text + suffix, self.spans + [self.spans[-1]] * len(suffix), self.start)
