"""Keeps text that is data from turning into control tokens when a chat template glues it between real ones.

A message may contain the spelling of a control token ("<|im_end|>"). Before the template runs, a guard character that no text holds is put inside
every such spelling, and behind any beginning of one at the end of a message, so that no join of messages can complete it. What the template wrote
itself has no guard inside. After rendering, the stretches between the template's own marks that hold guards lose them and are encoded as
plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cygnet.records import record

GUARD = "\ufdd0"  # a Unicode noncharacter: never part of a text that is interchanged
_WRITTEN_GUARD = re.compile(GUARD + r"|\\ufdd0")  # the second is what JSON with ASCII escapes makes of it


@record
class Prompt:
    """A rendered prompt; control tokens spelled inside the `literal` spans (start, end) are text."""

    text: str
    literal: tuple[tuple[int, int], ...] = ()


class Guard:
    """Guards one set of control tokens.

    Parameters
    ----------
    tokens : iterable of str
        The spellings that the tokenizer turns into single control tokens.
    """

    def __init__(self, tokens: Iterable[str]):
        self.tokens = sorted({token for token in tokens if len(token) > 1}, key=len, reverse=True)
        self._any = re.compile("|".join(map(re.escape, self.tokens)) or r"(?!)")
        self._beginnings = sorted({token[:n] for token in self.tokens for n in range(1, len(token))}, key=len, reverse=True)

    def protect(self, value):
        """`value` with guards in every string of it, at any depth of lists and mappings; keys stay as they are."""
        if isinstance(value, str):
            return self._protect_text(value)
        if isinstance(value, Mapping):
            return {key: self.protect(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.protect(item) for item in value]
        return value

    def found_in(self, value) -> set[str]:
        """Control tokens spelled anywhere in `value`."""
        if isinstance(value, str):
            return {token for token in self.tokens if token in value}
        if isinstance(value, Mapping):
            value = value.values()
        return set().union(*map(self.found_in, value)) if isinstance(value, Iterable) else set()

    def without(self, tokens: Iterable[str]) -> Guard:
        """A guard that lets these tokens through."""
        left_out = set(tokens)
        return Guard(token for token in self.tokens if token not in left_out)

    def release(self, rendered: str) -> Prompt:
        """A rendered text without its guards, with the stretches between the template's own marks that held some as literal spans."""
        pieces: list[str] = []
        literal: list[tuple[int, int]] = []
        length = position = 0
        for mark in [*self._any.finditer(rendered), None]:
            stretch = rendered[position : mark.start() if mark else len(rendered)]
            text = strip_guards(stretch)
            if text != stretch:
                literal.append((length, length + len(text)))
            pieces += [text, mark.group() if mark else ""]
            length += len(pieces[-2]) + len(pieces[-1])
            position = mark.end() if mark else position
        return Prompt("".join(pieces), tuple(literal))

    def _protect_text(self, text: str) -> str:
        text = text.replace(GUARD, "\ufffd")
        while self._any.search(text):
            text = self._any.sub(lambda found: found.group()[0] + GUARD + found.group()[1:], text)
        end = len(text.rstrip())
        for beginning in self._beginnings:
            if text.endswith(beginning, 0, end):
                return text[:end] + GUARD + text[end:]
        return text


def strip_guards(rendered: str) -> str:
    """The text as it would have been rendered without guards."""
    return _WRITTEN_GUARD.sub("", rendered)
