"""layer_norm and rms_norm of every instruction set against float64."""

import numpy as np
import pytest

from cygnet._core import _kernels
from cygnet.errors import OptionError
from cygnet.reference import ops

# Of values of order one: a dozen roundings, the sums add less than one.
TOLERANCE = 3e-6


def run(kind, x, weight, bias, eps, isa, out=None):
    out = np.full(x.shape, np.nan, np.float32) if out is None else out
    if kind == "layer":
        _kernels.layer_norm(x, weight, bias, eps, out, isa)
    else:
        _kernels.rms_norm(x, weight, eps, out, isa)
    return out


def reference(kind, x, weight, bias, eps):
    x = x.astype(np.float64)
    return ops.layer_norm(x, weight, bias, eps) if kind == "layer" else ops.rms_norm(x, weight, eps)


@pytest.fixture(params=["layer", "rms"])
def kind(request):
    return request.param


@pytest.mark.parametrize("affine", [True, False])
def test_against_float64(kind, affine, isa, sizes):
    rng = np.random.default_rng(1)
    for d in sizes:
        for m in (0, 1, 3):
            x = rng.standard_normal((m, d), np.float32)
            weight, bias = (rng.standard_normal(d, np.float32) for _ in range(2)) if affine else (None, None)
            got = run(kind, x, weight, bias, 1e-5, isa)
            assert np.allclose(got, reference(kind, x, weight, bias, 1e-5) if m and d else got, rtol=TOLERANCE, atol=TOLERANCE)


def test_no_access_outside_the_arrays(kind, isa, sizes, guarded):
    rng = np.random.default_rng(2)
    for d in sizes[1:]:
        x, weight, bias = (guarded(rng.standard_normal(shape, np.float32)) for shape in ((2, d), d, d))
        got = run(kind, x, weight, bias, 1e-5, isa, out=guarded(np.zeros((2, d), np.float32)))
        assert np.allclose(got, reference(kind, x, weight, bias, 1e-5), rtol=TOLERANCE, atol=TOLERANCE)


def test_in_place_and_strided_rows_give_the_same_bits(kind, isa):
    rng = np.random.default_rng(3)
    wide = rng.standard_normal((5, 80), np.float32)
    x, weight = wide[:, 3:70], rng.standard_normal(67, np.float32)
    expected = run(kind, np.ascontiguousarray(x), weight, None, 1e-6, isa)
    border = wide[:, 70:].copy()
    run(kind, x, weight, None, 1e-6, isa, out=x)
    assert np.array_equal(x, expected)
    assert np.array_equal(wide[:, 70:], border)


def test_a_row_does_not_depend_on_the_others(kind, isa):
    x = np.random.default_rng(4).standard_normal((7, 333), np.float32)
    together = run(kind, x, None, None, 1e-5, isa)
    alone = np.concatenate([run(kind, x[i : i + 1], None, None, 1e-5, isa) for i in range(7)])
    assert np.array_equal(together, alone)


def test_far_mean_keeps_its_variance(isa):
    x = (np.random.default_rng(5).standard_normal((3, 1000)) * 0.01 + 100).astype(np.float32)
    assert np.abs(run("layer", x, None, None, 1e-5, isa) - reference("layer", x, None, None, 1e-5)).max() < 1e-4


def test_constant_and_zero_rows(kind, isa):
    for value in (0.0, 1e-20, 3.3):
        x = np.full((1, 37), value, np.float32)
        got = run(kind, x, None, None, 1e-5, isa)
        assert np.allclose(got, reference(kind, x, None, None, 1e-5), atol=1e-4)


def test_nan_stays_in_its_row(kind, isa):
    x = np.random.default_rng(6).standard_normal((3, 50), np.float32)
    x[1, 7] = np.nan
    got = run(kind, x, None, None, 1e-5, isa)
    assert np.isnan(got[1]).all()
    assert np.isfinite(got[[0, 2]]).all()


def test_wrong_shapes_are_refused(kind):
    x = np.zeros((2, 4), np.float32)
    with pytest.raises(OptionError, match="weight"):
        run(kind, x, np.zeros(3, np.float32), None, 1e-5, None)
    with pytest.raises(OptionError, match="shape"):
        run(kind, x, None, None, 1e-5, None, out=np.zeros((2, 5), np.float32))
    with pytest.raises(OptionError, match="contiguous"):
        run(kind, np.zeros((2, 8), np.float32)[:, ::2], None, None, 1e-5, None)
