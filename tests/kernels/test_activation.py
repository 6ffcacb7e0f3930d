"""Activations of every instruction set against float64, alone and as gates."""

import numpy as np
import pytest

from cygnet._core import _kernels
from cygnet.errors import OptionError
from cygnet.reference import ops

# Largest absolute error, divided by |x| where that is above 1.
TOLERANCE = {
    "identity": 0,
    "relu": 0,
    "gelu": 1.5e-7,  # the fit of the tail is good to 2e-8, the rest is rounding
    "gelu_tanh": 2e-7,
    "gelu_quick": 2e-7,
    "silu": 2e-7,
    "tanh": 1.3e-7,
    "sigmoid": 1.3e-7,
    "relu2": 1e-7,  # of x^2
}


def run(name, x, isa, out=None):
    out = np.full(x.shape, np.nan, np.float32) if out is None else out
    _kernels.activate(name, x, out, isa)
    return out


def far_values():
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [np.linspace(-20, 20, 40001), np.linspace(-1e-3, 1e-3, 2001), rng.standard_normal(1000) * 100, [0.0, -0.0, 1e30, -1e30, 1e-40]]
    )
    return x.astype(np.float32)


@pytest.mark.parametrize("name", _kernels.ACTIVATIONS)
def test_against_float64_over_the_whole_range(name, isa):
    x = far_values()
    with np.errstate(over="ignore", invalid="ignore"):
        want = ops.ACTIVATIONS[name](x.astype(np.float64)).astype(np.float32).astype(np.float64)
        got = run(name, x, isa)
        # float32 x^3 overflows where the float64 one does not; the result is 0 or x there all the same.
        finite = np.isfinite(want)
        scale = np.maximum(1, np.abs(x.astype(np.float64))) ** (2 if name == "relu2" else 1)
        assert (np.abs(got[finite] - want[finite]) / scale[finite]).max() <= TOLERANCE[name]
    assert np.array_equal(got[~finite], want[~finite])


def test_tanh_and_sigmoid_keep_small_values(isa):
    x = np.logspace(-30, 0, 1000).astype(np.float32)
    for sign in (1, -1):
        want = np.tanh(sign * x.astype(np.float64))
        assert (np.abs(run("tanh", sign * x, isa) / want - 1)).max() < 4e-7
    x = np.linspace(-85, 0, 5000).astype(np.float32)
    assert (np.abs(run("sigmoid", x, isa) / ops.sigmoid(x.astype(np.float64)) - 1)).max() < 4e-7


@pytest.mark.parametrize("name", _kernels.ACTIVATIONS)
def test_special_values(name, isa):
    got = run(name, np.array([np.nan, np.inf, 0.0], np.float32), isa)
    assert np.isnan(got[0])
    assert got[1] == (1 if name in ("tanh", "sigmoid") else np.inf)
    assert got[2] == (0.5 if name == "sigmoid" else 0)
    low = run(name, np.array([-np.inf], np.float32), isa)[0]
    assert low == {"identity": -np.inf, "tanh": -1}.get(name, 0) or (name in ("silu", "gelu_tanh", "gelu_quick") and np.isnan(low))


@pytest.mark.parametrize("name", _kernels.ACTIVATIONS)
def test_tails_match_the_vector_part(name, isa, sizes, guarded):
    x = np.random.default_rng(2).standard_normal(max(sizes), np.float32)
    whole = run(name, x, isa)
    for n in sizes:
        end = run(name, guarded(x[:n]), isa, out=guarded(np.zeros(n, np.float32)))
        assert np.array_equal(end, whole[:n])


def test_in_place(isa):
    x = np.random.default_rng(3).standard_normal(101, np.float32)
    want = run("silu", x, isa)
    run("silu", x, isa, out=x)
    assert np.array_equal(x, want)


@pytest.mark.parametrize("name", _kernels.ACTIVATIONS)
def test_gate_is_activation_times_up(name, isa, sizes, guarded):
    rng = np.random.default_rng(4)
    for d in sizes[1:]:
        gate, up = (guarded(rng.standard_normal((2, d), np.float32)) for _ in range(2))
        want = np.stack([run(name, row, isa) for row in gate]) * up
        out = guarded(np.zeros((2, d), np.float32))
        _kernels.gate(name, gate, up, out, isa)
        assert np.array_equal(out, want)
        _kernels.gate(name, gate, up, up, isa)
        assert np.array_equal(up, want)


def test_gate_of_strided_rows(isa):
    both = np.random.default_rng(5).standard_normal((4, 2 * 37), np.float32)
    want = ops.silu(both[:, :37].astype(np.float64)) * both[:, 37:]
    _kernels.gate("silu", both[:, :37], both[:, 37:], both[:, :37], isa)
    assert np.allclose(both[:, :37], want, rtol=1e-6, atol=1e-6)


def test_unknown_activation_is_refused():
    with pytest.raises(OptionError, match="mish"):
        run("mish", np.zeros(3, np.float32), None)
