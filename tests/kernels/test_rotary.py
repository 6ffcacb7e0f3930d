"""Rotary positions of every instruction set against float64."""

import numpy as np
import pytest

from cygnet._core import _kernels
from cygnet.errors import OptionError
from cygnet.reference import ops


@pytest.mark.parametrize("interleaved", [False, True])
def test_against_float64(interleaved, isa, sizes, guarded):
    rng = np.random.default_rng(1)
    for half in sizes[:-1]:
        for rest in (0, 3):
            x = guarded(rng.standard_normal((2, 3, 2 * half + rest), np.float32))
            cos, sin = (guarded(rng.uniform(-1, 1, (2, half)).astype(np.float32)) for _ in range(2))
            want = ops.rotary(x.astype(np.float64), cos[:, None], sin[:, None], interleaved=interleaved)
            untouched = x[..., 2 * half :].copy()
            _kernels.rotate(x, cos, sin, interleaved, isa)
            assert np.allclose(x, want, rtol=3e-7, atol=3e-7)
            assert np.array_equal(x[..., 2 * half :], untouched)


@pytest.mark.parametrize("interleaved", [False, True])
def test_angle_zero_changes_nothing(interleaved, isa):
    x = np.random.default_rng(2).standard_normal((1, 2, 20), np.float32)
    y = x.copy()
    _kernels.rotate(y, np.ones((1, 10), np.float32), np.zeros((1, 10), np.float32), interleaved, isa)
    assert np.array_equal(x, y)


def test_strided_heads_and_tokens(isa):
    x = np.random.default_rng(3).standard_normal((3, 4, 5, 16), np.float32)
    angle = np.random.default_rng(4).uniform(0, 6, (5, 8)).astype(np.float32)
    want = ops.rotary(x[1].astype(np.float64), np.cos(angle), np.sin(angle))
    others = x[[0, 2]].copy()
    _kernels.rotate(x[1].transpose(1, 0, 2), np.cos(angle), np.sin(angle), False, isa)
    assert np.allclose(x[1], want, atol=1e-6)
    assert np.array_equal(x[[0, 2]], others)


def test_too_many_pairs_are_refused():
    with pytest.raises(OptionError, match="pair"):
        _kernels.rotate(np.zeros((1, 1, 6), np.float32), np.zeros((1, 4), np.float32), np.zeros((1, 4), np.float32), False)
