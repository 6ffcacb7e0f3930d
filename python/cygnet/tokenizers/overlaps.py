"""Marks that overlap in a text, of which the longer one stands although the shorter one begins first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

# More overlapping pairs than this, and no text is asked whether it holds one.
MOST_PAIRS = 20_000
MOST_JOINED = 64


class Overlaps:
    """Finds a set of strings the longest first, each in what is left of the text.

    Nearly always that is the same as from left to right; it is not where a string ends in the beginning of a longer one, and a text has them so.

    Parameters
    ----------
    contents : sequence of str
    """

    def __init__(self, contents: Sequence[str]):
        self.contents = sorted(contents, key=lambda content: len(content.encode("utf-8", "surrogateescape")), reverse=True)
        self.joined = joined_pairs(self.contents)

    def are_in(self, text: str) -> bool:
        """Whether the order may matter for the text."""
        return self.joined is None or any([pair in text for pair in self.joined])

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the strings are, from left to right."""
        found: list[tuple[int, int]] = []
        free = [(0, len(text))]
        for content in self.contents:
            if content not in text:
                continue
            left: list[tuple[int, int]] = []
            for start, end in free:
                at = text.find(content, start, end)
                while at >= 0:
                    found.append((at, at + len(content)))
                    left.append((start, at))
                    start = at + len(content)
                    at = text.find(content, start, end)
                left.append((start, end))
            free = left
        return sorted(found)


def joined_pairs(contents: Sequence[str]) -> list[str] | None:
    """A string and a longer one that begins with its end, as they overlap; None where there are too many such pairs."""
    starting: defaultdict[str, list[str]] = defaultdict(list)
    for content in contents:
        for size in range(1, len(content)):
            starting[content[:size]].append(content)
    out: set[str] = set()
    pairs = 0
    for content in contents:
        for size in range(1, len(content)):
            for longer in starting.get(content[-size:], ()):
                pairs += 1
                joined = content + longer[size:]
                if len(longer) > len(content) and not joined.startswith(longer):
                    out.add(joined)
                if pairs > MOST_PAIRS or len(out) > MOST_JOINED:
                    return None
    return sorted(out)
