"""Frozen dataclasses that cost nothing to define.

The standard decorator writes and compiles half a dozen functions for each class; for all that a model's load defines, this takes as long as reading
its vocabulary. A record is a dataclass as well, which `dataclasses.replace` and `fields` know, and has the functions that all records share.
"""

from dataclasses import MISSING, FrozenInstanceError, dataclass
from typing import TYPE_CHECKING


def _init(self, *args, **kwargs):
    fields, values = self.__dataclass_fields__, self.__dict__
    if len(args) > len(fields):
        raise TypeError(f"{type(self).__name__} has {len(fields)} fields, {len(args)} are given")
    values.update(zip(fields, args, strict=False))
    for name, value in kwargs.items():
        if name not in fields or name in values:
            raise TypeError(f"{type(self).__name__}: {name!r} is {'given twice' if name in fields else 'no field'}")
        values[name] = value
    for name, field in fields.items():
        if name not in values:
            values[name] = _default(self, field)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _default(self, field):
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    raise TypeError(f"{type(self).__name__}: {field.name!r} is missing")


def _values(self):
    return tuple([self.__dict__[name] for name in self.__dataclass_fields__])


def _eq(self, other):
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self):
    return hash(_values(self))


def _repr(self):
    return f"{type(self).__qualname__}({', '.join([f'{name}={self.__dict__[name]!r}' for name in self.__dataclass_fields__])})"


def _frozen(self, name, *value):
    raise FrozenInstanceError(f"{type(self).__name__} cannot be changed: {name!r}")


SHARED = {"__init__": _init, "__eq__": _eq, "__hash__": _hash, "__repr__": _repr, "__setattr__": _frozen, "__delattr__": _frozen}

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(cls):
        """Class decorator: `dataclass(frozen=True)`, but for the time it takes.

        Examples
        --------
        >>> @record
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(1), Point(1) == Point(x=1, y=0)
        (Point(x=1, y=0), True)
        """
        cls.__doc__ = cls.__doc__ or cls.__name__  # else the decorator makes a signature of it
        for name, function in SHARED.items():
            setattr(cls, name, function)
        return dataclass(init=False, repr=False, eq=False)(cls)
