"""softmax and log_softmax of every instruction set against float64."""

import numpy as np
import pytest

from cygnet._core import _kernels
from cygnet.reference import ops

# exp is good to 1.2 ulp of float32 (1e-7) and the sum and the division add as much.
TOLERANCE = 4e-7


def softmax(x, isa, mask=None):
    y = np.array(x, np.float32)
    _kernels.softmax(y, mask, isa)
    return y


def log_softmax(x, isa):
    y = np.array(x, np.float32)
    _kernels.log_softmax(y, isa)
    return y


@pytest.mark.parametrize("spread", [1.0, 30.0, 1e4])
def test_against_float64(spread, isa, sizes):
    rng = np.random.default_rng(1)
    for n in sizes[1:]:
        x = (rng.standard_normal((3, n)) * spread).astype(np.float32)
        want = ops.softmax(x.astype(np.float64))
        assert np.allclose(softmax(x, isa), want, rtol=3e-6, atol=TOLERANCE)
        want = ops.log_softmax(x.astype(np.float64))
        assert np.allclose(log_softmax(x, isa), want, rtol=2e-7, atol=1e-6)


def test_no_access_outside_the_arrays(isa, sizes, guarded):
    rng = np.random.default_rng(2)
    for n in sizes[1:]:
        x, mask = rng.standard_normal((2, n), np.float32), rng.integers(0, 2, (2, n), np.uint8)
        for function, extra in ((_kernels.softmax, (None,)), (_kernels.softmax, (guarded(mask),)), (_kernels.log_softmax, ())):
            y, z = guarded(x), x.copy()
            function(y, *extra, isa)
            function(z, *extra, isa)
            assert np.array_equal(y, z)


def test_large_vocabulary_sums_to_one(isa):
    x = np.random.default_rng(3).standard_normal((1, 151_937), np.float32)
    assert abs(softmax(x, isa).sum(dtype=np.float64) - 1) < 3e-7
    want = ops.log_softmax(x.astype(np.float64))
    assert np.abs(log_softmax(x, isa) - want).max() < 2e-6


def test_masked_entries_take_no_part_whatever_they_hold(isa):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((4, 83), np.float32)
    mask = rng.integers(0, 2, x.shape).astype(np.uint8)
    mask[2] = 0
    want = ops.softmax(x.astype(np.float64), mask)
    x[mask == 0] = rng.choice([np.nan, np.inf, -np.inf, 1e38], (mask == 0).sum())
    got = softmax(x, isa, mask)
    assert np.allclose(got, want, rtol=3e-6, atol=TOLERANCE)
    assert (got[mask == 0] == 0).all()


def test_rows_of_minus_infinity_give_zeros(isa):
    assert (softmax(np.full((2, 19), -np.inf), isa) == 0).all()


def test_nan_shows_in_its_whole_row(isa):
    x = np.random.default_rng(5).standard_normal((3, 77), np.float32)
    x[1, 70] = np.nan
    for got in (softmax(x, isa), log_softmax(x, isa)):
        assert np.isnan(got[1]).all()
        assert np.isfinite(got[[0, 2]]).all()


def test_equal_scores_give_equal_parts_exactly(isa):
    assert (softmax(np.full((1, 64), 7.25), isa) == np.float32(1 / 64)).all()


def test_a_row_does_not_depend_on_the_others(isa):
    x = np.random.default_rng(6).standard_normal((5, 211), np.float32)
    assert np.array_equal(softmax(x, isa), np.concatenate([softmax(x[i : i + 1], isa) for i in range(5)]))
    assert np.array_equal(log_softmax(x, isa), np.concatenate([log_softmax(x[i : i + 1], isa) for i in range(5)]))


def test_strided_rows(isa):
    wide = np.random.default_rng(7).standard_normal((3, 50), np.float32)
    want, rest = softmax(wide[:, 5:41], isa), wide[:, 41:].copy()
    _kernels.softmax(wide[:, 5:41], None, isa)
    assert np.array_equal(wide[:, 5:41], want)
    assert np.array_equal(wide[:, 41:], rest)
