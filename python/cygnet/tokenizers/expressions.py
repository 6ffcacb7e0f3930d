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
        """Ranges of all matches; an empty one right behind another does not count."""
        found: list[tuple[int, int]] = []
        for match in self.compiled.finditer(text):
            start, end = match.span()
            if start < end or not found or found[-1][1] < start:
                found.append((start, end))
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
