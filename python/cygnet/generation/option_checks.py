"""Checks of single option values: each returns the value in its normal form or raises OptionError naming the option and its range."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real

from cygnet.errors import OptionError

Check = Callable[[str, object], object]


def refuse(name: str, value: object, wanted: str) -> OptionError:
    return OptionError(f"{name} must be {wanted}, not {value!r}")


def integer(low: int, high: int | None = None) -> Check:
    """An int in [low, high]."""
    wanted = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"

    def check(name, value):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < low or (high is not None and value > high):
            raise refuse(name, value, wanted)
        return int(value)

    return check


def number(low: float = -math.inf, high: float = math.inf, *, open_low: bool = False, open_high: bool = False) -> Check:
    """A finite float in the interval, with open ends where said."""
    left, right = "(" if open_low or low == -math.inf else "[", ")" if open_high or high == math.inf else "]"

    def check(name, value):
        good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and low <= value <= high
        if not good or (open_low and value == low) or (open_high and value == high):
            raise refuse(name, value, f"a finite number in {left}{low:g}, {high:g}{right}")
        return float(value)

    return check


def optional(check: Check) -> Check:
    """None, or what `check` accepts."""
    return lambda name, value: None if value is None else check(name, value)


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise refuse(name, value, "True or False")
    return value


def function(name: str, value: object) -> object:
    if not callable(value):
        raise refuse(name, value, "a function")
    return value


def text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise refuse(name, value, "a string")
    return value


def mappings(name: str, value: object) -> object:
    """A list of mappings, as tools and documents are."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable) or not all(isinstance(item, Mapping) for item in value):
        raise refuse(name, value, "a list of mappings")
    return value


def json_schema(name: str, value: object) -> object:
    """A schema as an object, as its JSON text, or True for any JSON; its content is checked when it is compiled."""
    if not isinstance(value, (str, Mapping)) and value is not True:
        raise refuse(name, value, "a JSON schema: a dict, JSON text, or True for any JSON")
    return value


def constraint(name: str, value: object) -> object:
    if not callable(getattr(value, "start", None)):
        raise refuse(name, value, "a constraint of cygnet.generation.constraints")
    return value


def token_id(name: str, value: object) -> int:
    return integer(0, 2**31 - 1)(name, value)


def token_ids(name: str, value: object) -> tuple[int, ...]:
    """One id or several."""
    if value is None:
        return ()
    if isinstance(value, Integral):
        return (token_id(name, value),)
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise refuse(name, value, "a token id or a list of token ids")
    return tuple(token_id(name, item) for item in value)


def words(name: str, value: object) -> tuple[tuple[int, ...], ...]:
    """Token sequences; a bare id is a sequence of one."""
    if value is None:
        return ()
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise refuse(name, value, "a list of lists of token ids")
    found = tuple(token_ids(name, item) for item in value)
    if () in found:
        raise OptionError(f"{name} holds an empty sequence")
    return found


def stop_strings(name: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    strings = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (None,)
    for item in strings:
        if not isinstance(item, str) or not item:
            raise refuse(name, value, "a non-empty string or a list of them")
    return strings


def logit_bias(name: str, value: object) -> tuple[tuple[tuple[int, ...], float], ...]:
    """A mapping from ids (int, or str as JSON has them, or tuples for sequences) to what is added; -inf bars."""
    if value is None:
        return ()
    items = value.items() if isinstance(value, Mapping) else value
    try:
        pairs = [(key, bias) for key, bias in items]
    except (TypeError, ValueError):
        raise refuse(name, value, "a mapping from token id to number") from None
    return tuple((_bias_key(name, key), _bias_value(name, bias)) for key, bias in pairs)


def _bias_key(name: str, key: object) -> tuple[int, ...]:
    if isinstance(key, str):
        if not (key.isascii() and key.isdigit()):
            raise refuse(f"a key of {name}", key, "a token id")
        key = int(key)
    ids = token_ids(f"a key of {name}", key)
    if not ids:
        raise refuse(f"a key of {name}", key, "a token id or a non-empty tuple of them")
    return ids


def _bias_value(name: str, bias: object) -> float:
    if bias == -math.inf:
        return -math.inf
    return number()(f"a value of {name}", bias)


def one_of(*choices: object) -> Check:
    """One of a few values; True and 1 are not the same."""

    def check(name, value):
        for choice in choices:
            if value is choice or (isinstance(choice, str) and value == choice):
                return choice
        raise refuse(name, value, " or ".join(map(repr, choices)))

    return check
