"""Quantisation of activations and weights: the written formulas, error no worse than the plain choice of scale, awkward groups."""

import numpy as np
import pytest

from cygnet._core import _kernels, _products
from cygnet.reference.quantization import hadamard

ISAS = _kernels.isa_names()


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def groups_of(x):
    """(rows, k) to (rows, groups, 32), zero-padded."""
    rows, k = x.shape
    padded = np.zeros((rows, -(-k // 32) * 32), x.dtype)
    padded[:, :k] = x
    return padded.reshape(rows, -1, 32)


def dequantized(kind, codes, scales, minima):
    codes = groups_of(codes.view(np.int8)).astype(np.float64)
    scales = scales[:, :, None].astype(np.float64)
    return {"int8": lambda: codes * scales, "int4": lambda: (codes - 8) * scales, "int4m": lambda: codes * scales + minima[:, :, None]}[kind]()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("k", (1, 31, 32, 33, 65, 128, 160, 517))
def test_rows_follow_the_formula(isa, k):
    x = normal(k, 7, k) * np.float32(3.7)
    q, scale, sums = _products.quantize_rows(x, isa=isa)
    groups = groups_of(x)
    largest = np.abs(groups).max(axis=2)
    expected = np.rint(groups * (np.float32(127) / largest)[:, :, None])
    assert np.array_equal(scale, largest * np.float32(1 / 127))
    assert np.array_equal(q.reshape(expected.shape), expected)
    assert np.array_equal(sums, expected.sum(axis=2))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("k", (1, 31, 32, 33, 65, 128, 160, 517))
def test_rows_in_the_hadamard_basis(isa, k):
    """The codes of the transformed row but for roundings at halves, since the factor is part of the scale; a last group that is not full is plain."""
    x = normal(k, 7, k) * np.float32(3.7)
    q, scale, sums = _products.quantize_rows(x, hadamard=True, isa=isa)
    expected, expected_scale, _ = _products.quantize_rows(hadamard(x), isa=isa)
    np.testing.assert_allclose(scale, expected_scale, rtol=1e-6)
    assert np.abs(q.astype(int) - expected).max() <= 1 and (q != expected).mean() < 1e-3
    assert np.array_equal(sums, groups_of(q.astype(int)).sum(axis=2))
    assert np.array_equal(q, _products.quantize_rows(x, hadamard=True, isa="scalar")[0])


@pytest.mark.parametrize("isa", ISAS)
def test_halves_round_to_even(isa):
    x = np.zeros((1, 32), np.float32)
    x[0, :6] = 127, 0.5, 1.5, 2.5, -0.5, -1.5
    assert _products.quantize_rows(x, isa=isa)[0][0, :6].tolist() == [127, 0, 2, 2, 0, -2]


@pytest.mark.parametrize("isa", ISAS)
def test_awkward_rows(isa):
    x = np.zeros((6, 64), np.float32)
    x[1, 40], x[2, 40], x[3, 40] = np.nan, np.inf, -np.inf
    x[4, :32] = np.linspace(-1e-44, 1e-44, 32)
    x[5, :32] = np.linspace(-3e38, 3e38, 32)
    q, scale, sums = _products.quantize_rows(x, isa=isa)
    assert scale[0].tolist() == [0, 0] and not q[0].any()
    assert np.isnan(scale[1:4, 1]).all() and not scale[1:4, 0].any() and not q[1:4].any() and not sums[1:4].any()
    assert (np.abs(q.astype(int)) <= 127).all()
    assert not scale[4].any() and not q[4].any()  # below 2^-100
    assert np.abs(q[5, :32] * scale[5, 0] - x[5, :32]).max() <= 3e38 / 127


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ("int8", "int4", "int4m"))
@pytest.mark.parametrize("k", (1, 2, 31, 32, 33, 600))
def test_codes_and_scales_are_what_a_panel_holds(isa, kind, k):
    codes, scales, minima = _products.quantize_weights(kind, normal(k, 5, k), isa=isa)
    low, high = (-127, 127) if kind == "int8" else (0, 15)
    assert codes.view(np.int8).min() >= low and codes.view(np.int8).max() <= high
    for part in (scales,) if minima is None else (scales, minima):
        assert np.array_equal(part.astype(np.float16).astype(np.float32), part)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("size", (1, 1e-3, 1e-6, 1e6))
def test_eight_bits_stay_within_half_a_step(isa, size):
    weight = normal(1, 20, 200) * np.float32(size)
    quantized = _products.quantize_weights("int8", weight, isa=isa)
    groups = groups_of(weight)
    step = np.abs(groups).max(axis=2) / 127 * (1 + 2.0**-10) + 2.0**-24
    assert (np.abs(dequantized("int8", *quantized) - groups) <= step[:, :, None] / 2).all()


def plain_int4(groups):
    """Scale from the weight of largest magnitude, as in GGUF's Q4_0."""
    at = np.abs(groups).argmax(axis=2)
    scale = (np.take_along_axis(groups, at[:, :, None], 2) / -8).astype(np.float16).astype(np.float64)
    return np.clip(np.floor(groups / np.where(scale == 0, 1, scale) + 8.5), 0, 15) * scale - 8 * scale


def plain_int4m(groups):
    """Scale and minimum from the range, as in GGUF's Q4_1."""
    low = groups.min(axis=2, keepdims=True)
    scale = ((groups.max(axis=2, keepdims=True) - low) / 15).astype(np.float16).astype(np.float64)
    codes = np.clip(np.floor((groups - low) / np.where(scale == 0, 1, scale) + 0.5), 0, 15)
    return codes * scale + low.astype(np.float16)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind, plain", (("int4", plain_int4), ("int4m", plain_int4m)))
@pytest.mark.parametrize("shape", ("normal", "heavy", "uniform", "offset"))
def test_four_bits_are_closer_than_the_plain_choice(isa, kind, plain, shape):
    weight = normal(2, 64, 320)
    if shape == "heavy":
        weight = weight**3
    elif shape == "uniform":
        weight = np.random.default_rng(3).random((64, 320), np.float32) - np.float32(0.5)
    elif shape == "offset":
        weight += 2
    groups = groups_of(weight).astype(np.float64)
    error = np.square(dequantized(kind, *_products.quantize_weights(kind, weight, isa=isa)) - groups)
    reference = np.square(plain(groups) - groups)
    assert error.sum() < 0.97 * reference.sum()
    assert (error.sum(axis=2) <= reference.sum(axis=2) * 1.01 + 1e-9).mean() > 0.95


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ("int8", "int4", "int4m"))
def test_awkward_weights(isa, kind):
    weight = np.zeros((5, 70), np.float32)
    weight[1] = 0.25
    weight[2] = -0.25
    weight[3, 33], weight[4, 69] = np.nan, -np.inf
    quantized = _products.quantize_weights(kind, weight, isa=isa)
    values = dequantized(kind, *quantized)[:, :, :].reshape(5, -1)[:, :70]
    assert not values[0].any()
    np.testing.assert_allclose(values[1:3], weight[1:3], rtol=1e-3)
    scales = quantized[1]
    assert np.isnan(scales[3]).tolist() == [False, True, False] and np.isnan(scales[4]).tolist() == [False, False, True]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ("int8", "int8-hadamard", "int4", "int4m"))
@pytest.mark.parametrize("large", (1e10, -1e10, 1e20, -1e20, 1e30, -1e30))
def test_weights_beyond_float16_scales_show(isa, kind, large):
    """Never finite and wrong: what is multiplied with such a group is no finite number."""
    weight = normal(5, 1, 64)
    weight[0, 3] = large
    codes, scales, minima = _products.quantize_weights(kind, weight, isa=isa)
    assert not np.isfinite(scales[0, 0]) or (minima is not None and not np.isfinite(minima[0, 0]))
    assert np.isfinite(scales[0, 1])


@pytest.mark.parametrize("kind", ("int8", "int4", "int4m"))
def test_instruction_sets_agree(kind):
    weight = normal(4, 9, 333)
    codes, scales, minima = _products.quantize_weights(kind, weight, isa="scalar")
    for isa in ISAS:
        other = _products.quantize_weights(kind, weight, isa=isa)
        # Fused operations may tip the choice between two nearly equal scales.
        assert (other[0] != codes).mean() < 0.02
        assert (other[1] != scales).mean() < 0.05
