"""Reference number formats: round trips, error limits, special values."""

import numpy as np
import pytest

from cygnet.reference import quantization as q


def test_bfloat16_keeps_eight_bits_and_rounds_to_even():
    x = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -1.5, np.inf, 3.4e38, 0.0], np.float32)
    assert np.array_equal(q.from_bfloat16(q.to_bfloat16(x)), np.array([1, 1, 1 + 2**-6, -1.5, np.inf, np.inf, 0], np.float32))
    assert np.isnan(q.from_bfloat16(q.to_bfloat16(np.array([np.nan], np.float32)))).all()


def test_float16_overflows_to_infinity():
    assert np.array_equal(q.from_float16(q.to_float16(np.array([65519.0, 65520.0, -1e9], np.float32))), [65504, np.inf, -np.inf])


@pytest.mark.parametrize("width", [0, 1, 32, 45, 96])
def test_int8_error_is_half_a_step(width):
    x = np.random.default_rng(width).standard_normal((3, width), np.float32)
    codes, scales = q.quantize_int8(x)
    assert codes.shape == x.shape and scales.shape == (3, -(-width // q.GROUP))
    step = np.repeat(scales, q.GROUP, -1)[:, :width]
    assert (np.abs(q.dequantize_int8(codes, scales) - x) <= 0.5001 * step).all()


def test_int8_special_groups():
    x = np.zeros((1, 96), np.float32)
    x[0, 40] = np.nan
    x[0, 80] = 5
    codes, scales = q.quantize_int8(x)
    assert scales[0, 0] == 0 and np.isnan(scales[0, 1]) and codes[0, 80] == 127
    assert (codes[0, :80] == 0).all()


@pytest.mark.parametrize("width", [0, 31, 32, 70, 96])
def test_hadamard_is_orthonormal_and_its_own_inverse(width):
    x, y = np.random.default_rng(width).standard_normal((2, 3, width), np.float32)
    np.testing.assert_allclose(q.hadamard(q.hadamard(x)), x, atol=1e-6)
    np.testing.assert_allclose(q.hadamard(x) @ q.hadamard(y).T, x @ y.T, atol=2e-5)
    full = width // q.GROUP * q.GROUP
    matrix = q.hadamard(np.eye(full, dtype=np.float32)) if full else np.zeros((0, 0))
    assert np.allclose(np.abs(matrix[matrix != 0]), q.GROUP**-0.5)
    assert np.array_equal(q.hadamard(x)[:, full:], x[:, full:])


@pytest.mark.parametrize("minimum", [False, True])
def test_int4_error_is_bounded_and_the_largest_value_kept(minimum):
    x = np.random.default_rng(1).standard_normal((4, 70), np.float32)
    codes, scales, minima = q.quantize_int4(x, minimum=minimum)
    assert codes.max() <= 15 and (minima is None) != minimum
    back = q.dequantize_int4(codes, scales, minima)
    step = np.repeat(np.abs(scales), q.GROUP, -1)[:, :70]
    assert (np.abs(back - x) <= (0.52 if minimum else 1.01) * step).all()
    assert np.abs(back - x).max() < 0.5


def test_int4_of_zeros_is_zeros():
    for minimum in (False, True):
        assert (q.dequantize_int4(*q.quantize_int4(np.zeros((2, 33), np.float32), minimum=minimum)) == 0).all()
