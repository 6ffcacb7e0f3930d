"""Regular expressions that are compiled when they first meet a text: most belong to stages that a compiled lane stands in for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex


class Expression:
    """An expression of the `regex` package, which is not imported before one is used.

    Parameters
    ----------
    pattern : str
    literal : bool
        The pattern is text to be found as it stands.

    Examples
    --------
    >>> Expression("b+").sub("x", "abbc"), Expression("+", literal=True).split("1+2")
    ('axc', ['1', '2'])
    """

    def __init__(self, pattern: str, *, literal: bool = False):
        self.pattern = pattern
        self.literal = literal

    @cached_property
    def compiled(self) -> regex.Pattern:
        import regex

        return regex.compile(regex.escape(self.pattern) if self.literal else self.pattern)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Ranges of all matches as Oniguruma's callers find them.

        An empty match right behind another does not count, nor does what else begins there: the search goes on one character further.
        """
        found: list[tuple[int, int]] = []
        for match in self.compiled.finditer(text):
            start, end = match.span()
            if start == end:
                return self._spans_behind(text, found)
            found.append((start, end))
        return found

    def _spans_behind(self, text: str, found: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The matches found so far, and those behind them, some of which are empty; there the `regex` package has another rule."""
        done = found[-1][1] if found else -1
        at = max(done, 0)
        while at <= len(text) and (match := self.compiled.search(text, at)):
            start, end = match.span()
            if start == end == done:
                at += 1
                continue
            found.append((start, end))
            at = done = end
        return found

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (other.pattern, other.literal) == (self.pattern, self.literal)

    def __hash__(self) -> int:
        return hash((self.pattern, self.literal))

    def __getattr__(self, name: str):
        """The methods of a compiled pattern: finditer, fullmatch, sub ..."""
        if name.startswith("_"):
            raise AttributeError(name)
        method = getattr(self.compiled, name)
        setattr(self, name, method)
        return method
