"""Careful reading of JSON fields: every value is checked for its type, and an error names the place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cygnet._core._vocabulary import Vocabulary, read_ids
from cygnet.errors import TokenizerError
from cygnet.tokenizers.expressions import Expression
from cygnet.tokenizers.patterns import compile_pattern

MISSING = object()
MAX_ID = 2**31 - 1
# An empty string matches between any two characters, as it does as an expression.
NOTHING = Expression("")


class Fields:
    """An object of a JSON document and the path that leads to it.

    Parameters
    ----------
    value : dict
    where : str
        Path for error messages, such as "tokenizer.json: model".
    """

    def __init__(self, value: Any, where: str):
        if not isinstance(value, dict):
            raise TokenizerError(f"{where} must be an object, not {type(value).__name__}")
        self.value = value
        self.where = where

    def get(self, name: str, kind: type | tuple[type, ...], default: Any = MISSING) -> Any:
        """The field's value, of the given type; default where it is absent or null."""
        found = self.value.get(name)
        if type(found) is kind:
            return found
        if found is None:
            if default is MISSING:
                raise TokenizerError(f"{self.where}.{name} is missing")
            return default
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in kinds):
            raise TokenizerError(f"{self.where}.{name} must be {' or '.join(k.__name__ for k in kinds)}, not {type(found).__name__}")
        return found

    def string(self, name: str, default: Any = MISSING) -> Any:
        return self.get(name, str, default)

    def flag(self, name: str, default: Any = MISSING) -> Any:
        return self.get(name, bool, default)

    def size(self, name: str, default: Any = MISSING) -> Any:
        """A number from 0 to 2**31 - 1."""
        found = self.get(name, int, default)
        if found is not default and not 0 <= found <= MAX_ID:
            raise TokenizerError(f"{self.where}.{name} is {found}; it must be between 0 and {MAX_ID}")
        return found

    def char(self, name: str, default: Any = MISSING) -> str:
        found = self.string(name, default)
        if len(found) != 1:
            raise TokenizerError(f"{self.where}.{name} must be one character, not {found[:20]!r}")
        return found

    def choice(self, name: str, choices: tuple[str, ...], default: Any = MISSING) -> str:
        found = self.string(name, default)
        if found not in choices:
            raise TokenizerError(f"{self.where}.{name} is {found[:40]!r}; it must be one of {', '.join(choices)}")
        return found

    def objects(self, name: str, default: Any = MISSING) -> list[Fields]:
        return [Fields(item, f"{self.where}.{name}[{i}]") for i, item in enumerate(self.get(name, list, default))]

    def pattern(self, name: str = "pattern") -> str | Expression:
        """A literal string, or a regular expression."""
        found = self.get(name, (dict, str))
        if isinstance(found, str):
            return found
        inner = Fields(found, f"{self.where}.{name}")
        if "String" in found:
            return inner.string("String") or NOTHING
        return compile_pattern(inner.string("Regex"), f"{inner.where}.Regex")


@contextmanager
def values_of(where: str) -> Iterator[None]:
    """Turns what a number beyond all bounds or a lone surrogate raises, deep in a stage that is built from them, into a TokenizerError."""
    try:
        yield
    except (OverflowError, UnicodeError) as error:
        raise TokenizerError(f"{where} holds a number or a text that no tokenizer can have: {error}") from None


def parsed(value: Any, where: str) -> Any:
    """A value of a document; bytes are its JSON text."""
    if not isinstance(value, bytes):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{where} is no valid JSON: {error}") from None


def read_vocabulary(value: dict | bytes, where: str) -> Vocabulary:
    """A vocabulary object, or its JSON text, with the checks of read_vocab; of a text that passes them no object is made."""
    return (Vocabulary.from_json(value) if isinstance(value, bytes) else None) or Vocabulary(read_vocab(value, where))


def read_vocab(value: Any, where: str) -> dict[str, int]:
    """A vocabulary object, or its JSON text: tokens to ids in range, no id given twice."""
    quickly = read_ids(value) if isinstance(value, bytes) else None
    if quickly is not None:
        return quickly
    vocab = Fields(parsed(value, where), where).value
    ids = vocab.values()
    if not set(map(type, ids)) <= {int}:
        token = next(t for t, i in vocab.items() if type(i) is not int)
        raise TokenizerError(f"{where}[{token[:40]!r}] must be a whole number")
    if vocab and (min(ids) < 0 or max(ids) > MAX_ID):
        token = next(t for t, i in vocab.items() if not 0 <= i <= MAX_ID)
        raise TokenizerError(f"{where}[{token[:40]!r}] is {vocab[token]}; ids must be between 0 and {MAX_ID}")
    if len(set(ids)) != len(vocab):
        seen: dict[int, str] = {}
        token = next(t for t, i in vocab.items() if seen.setdefault(i, t) != t)
        raise TokenizerError(f"{where}: id {vocab[token]} is given to both {seen[vocab[token]][:40]!r} and {token[:40]!r}")
    return vocab
