"""axpy, multiply, softcap and argmax of every instruction set."""

import numpy as np
import pytest

from cygnet._core import _kernels
from cygnet.reference import ops


def test_axpy_and_multiply(isa, sizes, guarded):
    rng = np.random.default_rng(1)
    for n in sizes:
        x, y = (guarded(rng.standard_normal(n, np.float32)) for _ in range(2))
        want = np.float64(1.7) * x + y
        product = x * y
        z = guarded(y)
        _kernels.axpy(1.7, x, y, isa)
        assert np.allclose(y, want, rtol=2e-7, atol=3e-7)
        _kernels.multiply(x, z, isa)
        assert np.array_equal(z, product)


@pytest.mark.parametrize("cap", [2.0, 30.0, 50.0])
def test_softcap(cap, isa, sizes, guarded):
    rng = np.random.default_rng(2)
    for n in sizes:
        x = guarded((rng.standard_normal(n) * 3 * cap).astype(np.float32))
        want = ops.softcap(x.astype(np.float64), cap)
        _kernels.softcap(cap, x, isa)
        assert np.allclose(x, want, rtol=1e-6, atol=0)


def test_softcap_of_special_values(isa):
    x = np.array([np.inf, -np.inf, np.nan, 1e-30], np.float32)
    _kernels.softcap(30.0, x, isa)
    assert x[0] == 30 and x[1] == -30 and np.isnan(x[2])
    assert abs(x[3] / 1e-30 - 1) < 1e-6


def test_argmax_agrees_with_numpy(isa, sizes, guarded):
    rng = np.random.default_rng(3)
    for n in (*sizes[1:], 65537, 150_001):
        for values in (rng.standard_normal(n), rng.integers(0, 3, n), np.zeros(n), -np.arange(n), np.arange(n), np.full(n, -np.inf)):
            x = guarded(values.astype(np.float32))
            assert _kernels.argmax(x, isa) == int(np.argmax(x))


def test_argmax_passes_over_nan(isa):
    for n in (1, 5, 40, 1000, 5000):
        x = np.full(n, np.nan, np.float32)
        assert _kernels.argmax(x, isa) == -1
        x[n // 2] = -np.inf
        assert _kernels.argmax(x, isa) == n // 2
        x[-1] = 1
        assert _kernels.argmax(x, isa) == n - 1
        x[0] = 1
        assert _kernels.argmax(x, isa) == 0
    assert _kernels.argmax(np.zeros(0, np.float32), isa) == -1
