"""Regular expressions of tokenizer files, which follow Oniguruma's Ruby syntax, rewritten for the `regex` package."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from cygnet.errors import TokenizerError
from cygnet.tokenizers.expressions import Expression
from cygnet.tokenizers.unicode_classes import ONIGURUMA_SET_WORD, ONIGURUMA_WORD, SPACE, as_unicode_16

if TYPE_CHECKING:
    import regex

# A class of characters, or a switch that compares letters without their case.
CLASS = Expression(r"\\[A-Za-tv-z]|\[:|\(\?[a-z]")

# Escapes whose meaning differs; the second form is for the inside of a [...] set.
ESCAPES = {
    "s": (f"[{SPACE}]", f"[{SPACE}]"),
    "S": (f"[^{SPACE}]", f"[^{SPACE}]"),
    "d": (r"\p{Nd}", r"\p{Nd}"),
    "D": (r"\P{Nd}", r"\P{Nd}"),
    "w": (f"[{ONIGURUMA_WORD}]", ONIGURUMA_SET_WORD),
    "W": (f"[^{ONIGURUMA_WORD}]", f"[^{ONIGURUMA_SET_WORD}]"),
    "b": (f"(?:(?<=[{ONIGURUMA_WORD}])(?![{ONIGURUMA_WORD}])|(?<![{ONIGURUMA_WORD}])(?=[{ONIGURUMA_WORD}]))", r"\x08"),
    "B": (f"(?:(?<=[{ONIGURUMA_WORD}])(?=[{ONIGURUMA_WORD}])|(?<![{ONIGURUMA_WORD}])(?![{ONIGURUMA_WORD}]))", "B"),
    "h": ("[0-9A-Fa-f]", "0-9A-Fa-f"),
    "H": ("[^0-9A-Fa-f]", "[^0-9A-Fa-f]"),
    "Z": (r"(?=\n?\Z)", "Z"),
    "z": (r"\Z", "z"),
}


# Behind a line end that ends the text no line begins, but one ends.
ANCHORS = {"^": r"(?:\A|(?<=\n)(?!\Z))", "$": "(?m:$)"}


class _Reader:
    """One pass over a pattern, writing the other dialect."""

    def __init__(self, pattern: str):
        self.pattern = pattern
        self.at = 0
        self.out: list[str] = []

    def rewrite(self) -> str:
        depth = 0
        while self.at < len(self.pattern):
            c = self.pattern[self.at]
            if c == "\\":
                self.escape(inside=depth > 0)
            elif c == "[":
                depth += self.open_set()
            elif c == "]" and depth:
                depth -= 1
                self.copy(1)
            elif depth:
                self.inside_set(c)
            elif c in ANCHORS:
                self.out.append(ANCHORS[c])
                self.at += 1
            elif self.pattern.startswith("(?", self.at):
                self.group()
            else:
                self.copy(1)
        return "".join(self.out)

    def copy(self, count: int) -> None:
        self.out.append(self.pattern[self.at : self.at + count])
        self.at += count

    def escape(self, inside: bool) -> None:
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter in ESCAPES:
            self.out.append(ESCAPES[letter][inside])
            self.at += 2
        elif letter == "x" and self.pattern.startswith("{", self.at + 2):
            end = self.pattern.index("}", self.at)
            self.out.append(re.escape(chr(int(self.pattern[self.at + 3 : end], 16))))
            self.at = end + 1
        else:
            self.copy(2)

    def open_set(self) -> int:
        """Copies the opening of a set; 1 where a set was entered, 0 for a whole [:class:]."""
        if self.pattern.startswith("[:", self.at):
            end = self.pattern.find(":]", self.at)
            if end > 0:
                self.copy(end + 2 - self.at)
                return 0
        self.copy(2 if self.pattern.startswith("[^", self.at) else 1)
        if self.pattern.startswith("]", self.at):
            self.out.append("\\")
            self.copy(1)
        return 1

    def inside_set(self, c: str) -> None:
        """Doubled signs are set operators for the regex package but, apart from &&, plain characters here."""
        if c in "|~" or (c == "-" and self.pattern.startswith("-", self.at + 1)):
            self.out.append("\\")
        self.copy(1)

    def group(self) -> None:
        """Ruby's (?m) lets the dot match a line end: that is (?s)."""
        end = self.at + 2
        while end < len(self.pattern) and self.pattern[end] in "imx-":
            end += 1
        flags = self.pattern[self.at + 2 : end] if self.pattern[end : end + 1] in ("", ":", ")") else ""
        self.copy(2)
        if flags:
            self.out.append(flags.replace("m", "s"))
            self.at = end


class FileExpression(Expression):
    """An expression as a tokenizer file spells it."""

    @cached_property
    def compiled(self) -> regex.Pattern:
        import regex

        return regex.compile(_Reader(self.pattern).rewrite(), regex.V1)

    @cached_property
    def by_class(self) -> bool:
        """Whether it has classes: without them it means code points, whatever they are assigned to."""
        return CLASS.search(self.pattern) is not None

    def spans(self, text: str) -> list[tuple[int, int]]:
        return super().spans(as_unicode_16(text) if self.by_class else text)


@lru_cache(maxsize=256)
def compile_pattern(pattern: str, where: str = "pattern") -> FileExpression:
    """A tokenizer file's regular expression, compiled at once.

    Raises
    ------
    TokenizerError
        Where it is no valid expression; names the place in the file.
    """
    import regex

    expression = FileExpression(pattern)
    try:
        expression.compiled  # noqa: B018
    except (regex.error, ValueError, IndexError, RecursionError) as error:
        raise TokenizerError(f"{where}: regular expression {pattern[:80]!r} cannot be used: {error}") from None
    return expression
