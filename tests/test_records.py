"""Records are frozen dataclasses in all but the time they take to define."""

import dataclasses
import pickle

import pytest

from cygnet.records import record


@record
class Shape:
    rows: int
    columns: int = 1
    names: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Standard:
    rows: int
    columns: int = 1


def test_fields_and_defaults():
    shape = Shape(2)
    assert (shape.rows, shape.columns, shape.names) == (2, 1, [])
    assert [f.name for f in dataclasses.fields(shape)] == ["rows", "columns", "names"]
    assert Shape(2).names is not shape.names
    assert dataclasses.replace(shape, columns=3) == Shape(rows=2, columns=3)
    assert pickle.loads(pickle.dumps(shape)) == shape


def test_looks_like_a_dataclass():
    assert repr(Shape(2, 3)) == "Shape(rows=2, columns=3, names=[])"
    assert Shape(2) != Shape(3) and Shape(2) != Standard(2) and Shape(2) != (2, 1, [])


def test_hash_follows_the_values():
    @record
    class Pair:
        left: int
        right: int

    assert len({Pair(1, 2), Pair(1, 2), Pair(2, 1)}) == 2


@pytest.mark.parametrize("args, kwargs", [((), {}), ((1, 2, [], 4), {}), ((1,), {"rows": 2}), ((1,), {"depth": 2})])
def test_wrong_arguments(args, kwargs):
    with pytest.raises(TypeError, match="Shape"):
        Shape(*args, **kwargs)


def test_frozen():
    shape = Shape(2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        shape.rows = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        del shape.rows
