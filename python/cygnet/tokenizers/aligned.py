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

    Examples
    --------
    >>> AlignedText.of("ﬁn").transform([("f", 0), ("i", 1), ("n", 0)]).spans
    [(0, 1), (0, 1), (1, 2)]
    """

    __slots__ = ("spans", "text")

    def __init__(self, text: str, spans: list[Span]):
        self.text = text
        self.spans = spans

    @classmethod
    def of(cls, text: str, start: int = 0) -> AlignedText:
        """Text that stands for itself, beginning at code point `start` of the original."""
        return cls(text, [(i, i + 1) for i in range(start, start + len(text))])

    def __len__(self) -> int:
        return len(self.text)

    def __repr__(self) -> str:
        return f"AlignedText({self.text!r})"

    @property
    def start(self) -> int:
        """First code point of the original that the text stands for (0 for empty text)."""
        return self.spans[0][0] if self.spans else 0

    def original(self, start: int, end: int) -> Span:
        """Range of the original text behind characters start..end of this one; an empty range stays empty."""
        if start >= end:
            at = self.spans[start][0] if start < len(self.spans) else (self.spans[-1][1] if self.spans else 0)
            return at, at
        return self.spans[start][0], self.spans[end - 1][1]

    def slice(self, start: int, end: int) -> AlignedText:
        return AlignedText(self.text[start:end], self.spans[start:end])

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
        return AlignedText("".join(text), spans)

    def map(self, function: Callable[[str], str]) -> AlignedText:
        """Each character replaced by function(character), of any length, all of it standing for that character."""
        parts = [function(char) for char in self.text]
        return AlignedText("".join(parts), [span for part, span in zip(parts, self.spans, strict=True) for _ in part])

    def filter(self, keep: Callable[[str], bool]) -> AlignedText:
        """Only the characters for which keep(character) holds."""
        kept = [i for i, char in enumerate(self.text) if keep(char)]
        return AlignedText("".join([self.text[i] for i in kept]), [self.spans[i] for i in kept])

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
        return AlignedText("".join([*text, self.text[done:]]), spans + self.spans[done:])

    def prepend(self, prefix: str) -> AlignedText:
        """Prefix before the first character, standing for it; empty text stays empty."""
        if not self.text:
            return self
        return AlignedText(prefix + self.text, [self.spans[0]] * len(prefix) + self.spans)

    def append(self, suffix: str) -> AlignedText:
        """Suffix after the last character, standing for it; empty text stays empty."""
        if not self.text:
            return self
        return AlignedText(self.text + suffix, self.spans + [self.spans[-1]] * len(suffix))
