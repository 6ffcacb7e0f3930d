"""Position tables: a growth that fails leaves them as they were, and no pass reads beyond them."""

import numpy as np
import pytest

from cygnet import position_tables
from cygnet.architectures.spec import Alibi, RopeScaling, Rotary
from cygnet.engine import Engine
from cygnet.errors import OptionError
from tests.engine import tiny


def ids(count):
    return [(7 * i) % tiny.VOCAB for i in range(count)]


def engine(positions):
    spec = tiny.decoder(positions=positions)
    return Engine(spec, tiny.tensors(spec), weights="float32", threads=1)


def last(model, count):
    return model.forward([(model.sequence(), ids(count))])[0]


def failing_once(function, error):
    """Raises at its first call, and is the function itself afterwards."""
    calls = []

    def call(*args, **kwargs):
        calls.append(None)
        if len(calls) == 1:
            raise error
        return function(*args, **kwargs)

    return call


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize(("positions", "name"), [(Rotary(16), "rope_angles"), (Alibi((0.5, 0.25, 0.125, 0.0625)), "_bias")])
def test_a_failed_growth_is_made_good_by_the_next_pass(monkeypatch, positions, name, error):
    model = engine(positions)
    short = last(model, 100)
    with monkeypatch.context() as patched:
        patched.setattr(position_tables, name, failing_once(getattr(position_tables, name), error))
        with pytest.raises(error):
            last(model, 600)
        np.testing.assert_array_equal(last(model, 100), short)
        np.testing.assert_array_equal(last(model, 600), last(engine(positions), 600))


def test_a_text_read_in_pieces_has_the_tables_of_the_whole():
    model = engine(Rotary(16, scaling=RopeScaling("dynamic", 2.0, original_max_positions=50)))
    text = ids(700)  # more than a pass takes
    whole = model.forward([(model.sequence(), text)], rows="all")
    pieces, sequence = [], model.sequence()
    for start, end in ((0, 30), (30, 45), (45, 400), (400, 700)):
        sequence.announce(len(text))
        pieces.append(model.forward([(sequence, text[start:end])], rows="all"))
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    alone = model.forward([(model.sequence(), text[:30])], rows="all")
    assert not np.array_equal(alone, whole[:30])
    sequence.truncate(0)
    np.testing.assert_array_equal(model.forward([(sequence, text[:30])], rows="all"), alone)
    assert [model.variant(n) for n in (1, 50, 51)] == [0, 0, None]


def test_a_failed_variant_is_made_good_by_the_next_pass(monkeypatch):
    positions = Rotary(16, scaling=RopeScaling("dynamic", 2.0, original_max_positions=50))
    model = engine(positions)
    last(model, 100)
    with monkeypatch.context() as patched:
        patched.setattr(position_tables, "rope_angles", failing_once(position_tables.rope_angles, MemoryError))
        with pytest.raises(MemoryError):
            last(model, 90)
        np.testing.assert_array_equal(last(model, 90), last(engine(positions), 90))


def test_a_new_variant_never_replaces_one_that_the_same_pass_reads():
    positions = Rotary(16, scaling=RopeScaling("dynamic", 2.0, original_max_positions=10))
    model = engine(positions)
    for length in range(20, 20 + position_tables.VARIANTS - 1):
        last(model, length)
    together = model.forward([(model.sequence(), ids(20)), (model.sequence(), ids(60))])
    alone = np.stack([last(engine(positions), 20), last(engine(positions), 60)])
    np.testing.assert_array_equal(together, alone)


def test_a_pass_beyond_its_tables_is_refused(monkeypatch):
    model = engine(Rotary(16))
    last(model, 10)
    monkeypatch.setattr(position_tables.PositionTables, "prepare", lambda self, totals: None)
    assert np.isfinite(last(model, 128)).all()
    with pytest.raises(OptionError, match="too short for a sequence of 129"):
        last(model, 129)
