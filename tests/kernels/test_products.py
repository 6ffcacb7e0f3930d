"""Packed products: every instruction set against NumPy, equal bits whatever the number of rows and panels, no access outside the arrays."""

import mmap

import numpy as np
import pytest

from cygnet._core import _kernels, _products
from cygnet.errors import OptionError
from cygnet.reference.quantization import hadamard

ISAS = _kernels.isa_names()
FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("int8", "int8-hadamard", "int4", "int4m")
DIMENSIONS = (1, 31, 32, 33, 100, 517)


def rng(*seed):
    return np.random.default_rng(seed)


def to_bfloat16(x):
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


def stored(kind, weight):
    """The values a float kind keeps of a weight."""
    return {"float32": lambda w: w, "float16": lambda w: w.astype(np.float16).astype(np.float32), "bfloat16": to_bfloat16}[kind](weight)


def dequantized(kind, codes, scales, minima):
    """The weight that codes stand for, in the basis in which it is multiplied."""
    n, k = codes.shape

    def wide(a):
        return np.repeat(a, 32, axis=1)[:, :k].astype(np.float64)

    if kind in ("int8", "int8-hadamard"):
        return codes.view(np.int8) * wide(scales)
    if kind == "int4":
        return (codes - 8.0) * wide(scales)
    return codes * wide(scales) + wide(minima)


def packed_weight(kind, weight, isa):
    """Panels, and the float64 matrix that they stand for."""
    if kind in FLOATS:
        return _products.pack(kind, weight, isa=isa), stored(kind, weight).astype(np.float64)
    quantized = _products.quantize_weights(kind, weight, isa=isa)
    return _products.pack_codes(kind, *quantized, isa=isa), dequantized(kind, *quantized)


def activations(kind, x, isa):
    """What product takes, and the float64 rows that it stands for."""
    if kind in FLOATS:
        return x, x.astype(np.float64)
    q, scale, sums = _products.quantize_rows(x, hadamard=kind == "int8-hadamard", isa=isa)
    return (q, scale, sums), q[:, : x.shape[1]] * np.repeat(scale, 32, axis=1)[:, : x.shape[1]].astype(np.float64)


def rows_of(kind, a, rows):
    return a[rows] if kind in FLOATS else tuple(part[rows] for part in a)


def sizes(isa):
    nr = _products.panel_rows(isa)
    return sorted({*DIMENSIONS, nr - 1, nr, nr + 1, 3 * nr, 5 * nr + 3})


@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
@pytest.mark.parametrize("isa", ISAS)
def test_product_is_near_float64(isa, kind):
    for n in sizes(isa):
        for k in sizes(isa):
            weight = rng(n, k).standard_normal((n, k), np.float32)
            packed, exact = packed_weight(kind, weight, isa)
            for m in (1, 2, 7, 23):
                x, rows = activations(kind, rng(m, k).standard_normal((m, k), np.float32), isa)
                y = _products.product(kind, packed, n, k, x, isa=isa)
                # A chain of k rounded additions, each of relative error 2^-24, against the sum of magnitudes.
                bound = (k + 4) * 2.0**-24 * (np.abs(rows) @ np.abs(exact).T) + 1e-30
                if kind == "int4m":  # the two terms of a weight are summed apart
                    bound *= 4
                assert (np.abs(y - rows @ exact.T) <= bound).all(), (m, n, k)


@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("k", (33, 577, 1100))
def test_bits_do_not_depend_on_rows_or_panels(isa, kind, k):
    nr = _products.panel_rows(isa)
    n = 5 * nr + 3
    packed, _ = packed_weight(kind, rng(1, k).standard_normal((n, k), np.float32), isa)
    x, _ = activations(kind, rng(2, k).standard_normal((140, k), np.float32), isa)
    bias = rng(3).standard_normal(n, np.float32)
    whole = _products.product(kind, packed, n, k, x, bias=bias, alpha=0.7, isa=isa)
    for m in range(1, 41):
        part = _products.product(kind, packed, n, k, rows_of(kind, x, slice(0, m)), bias=bias, alpha=0.7, isa=isa)
        assert np.array_equal(part.view(np.uint32), whole[:m].view(np.uint32)), m
    for m in (1, 3, 140):
        for cut in range(1, 6):
            out = np.zeros((m, n), np.float32)
            for panels in ((0, cut), (cut, 6)):
                _products.product(kind, packed, n, k, rows_of(kind, x, slice(0, m)), bias=bias, alpha=0.7, out=out, panels=panels, isa=isa)
            assert np.array_equal(out.view(np.uint32), whole[:m].view(np.uint32)), (m, cut)


@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
def test_instruction_sets_with_fused_operations_agree_bit_for_bit(kind):
    n, k, m = 131, 577, 9
    weight, x = rng(4).standard_normal((n, k), np.float32), rng(5).standard_normal((m, k), np.float32)
    results = []
    for isa in (isa for isa in ISAS if isa != "scalar"):
        packed, _ = packed_weight(kind, weight, isa)
        results.append(_products.product(kind, packed, n, k, activations(kind, x, isa)[0], isa=isa))
    for result in results[1:]:
        assert np.array_equal(result.view(np.uint32), results[0].view(np.uint32))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
@pytest.mark.parametrize("m", (1, 4, 30))
def test_bias_alpha_and_accumulation(isa, kind, m):
    n, k = 2 * _products.panel_rows(isa) + 1, 70
    packed, exact = packed_weight(kind, rng(6).standard_normal((n, k), np.float32), isa)
    x, rows = activations(kind, rng(7).standard_normal((m, k), np.float32), isa)
    bias, start = rng(8).standard_normal(n, np.float32), rng(9).standard_normal((m, n), np.float32)
    for use_bias in (None, bias):
        expected = rows @ exact.T + (0 if use_bias is None else bias)
        out = np.full((m, n), np.nan, np.float32)
        _products.product(kind, packed, n, k, x, bias=use_bias, alpha=-0.25, out=out, isa=isa)
        np.testing.assert_allclose(out, -0.25 * expected, rtol=0, atol=1e-4)
        out = start.copy()
        _products.product(kind, packed, n, k, x, bias=use_bias, alpha=2.0, accumulate=True, out=out, isa=isa)
        np.testing.assert_allclose(out, start + 2 * expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
def test_rows_may_lie_apart(isa, kind):
    m, n, k = 10, 50, 40
    packed, _ = packed_weight(kind, rng(10).standard_normal((n, k + 9), np.float32)[:, :k], isa)
    wide = rng(11).standard_normal((m, k + 5), np.float32)
    x, _ = activations(kind, wide[:, :k], isa)
    compact, _ = activations(kind, np.ascontiguousarray(wide[:, :k]), isa)
    frame = np.full((m, n + 7), 5.0, np.float32)
    _products.product(kind, packed, n, k, x, out=frame[:, :n], isa=isa)
    assert np.array_equal(frame[:, :n], _products.product(kind, packed, n, k, compact, isa=isa))
    assert (frame[:, n:] == 5).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
def test_zero_sizes(isa, kind):
    for m, n, k in ((0, 40, 40), (3, 0, 40), (0, 0, 0)):
        packed, _ = packed_weight(kind, np.ones((n, k), np.float32), isa)
        x, _ = activations(kind, np.ones((m, k), np.float32), isa)
        assert _products.product(kind, packed, n, k, x, isa=isa).shape == (m, n)
    packed, _ = packed_weight(kind, np.ones((40, 0), np.float32), isa)
    x, _ = activations(kind, np.ones((3, 0), np.float32), isa)
    bias = np.arange(40, dtype=np.float32)
    assert np.array_equal(_products.product(kind, packed, 40, 0, x, bias=bias, isa=isa), np.tile(bias, (3, 1)))
    out = np.full((3, 40), 2.0, np.float32)
    _products.product(kind, packed, 40, 0, x, out=out, panels=(1, 1), isa=isa)
    assert (out == 2).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
@pytest.mark.parametrize("bad", (np.nan, np.inf, -np.inf))
def test_nan_and_infinity_reach_the_result(isa, kind, bad):
    n, k = 70, 75
    weight, x = rng(12).standard_normal((n, k), np.float32), rng(13).standard_normal((9, k), np.float32)
    x[4, 70] = bad
    packed, _ = packed_weight(kind, weight, isa)
    y = _products.product(kind, packed, n, k, activations(kind, x, isa)[0], isa=isa)
    assert not np.isfinite(y[4]).any()
    assert np.isfinite(np.delete(y, 4, axis=0)).all()
    weight[66, 3] = bad
    packed, _ = packed_weight(kind, weight, isa)
    y = _products.product(kind, packed, n, k, activations(kind, np.abs(x[:3]), isa)[0], isa=isa)
    assert not np.isfinite(y[:, 66]).any()
    assert np.isfinite(np.delete(y, 66, axis=1)).all()


def guarded(array):
    """A copy whose last byte lies directly before memory that may not be touched."""
    libc = pytest.importorskip("ctypes").CDLL(None)
    page = mmap.PAGESIZE
    length = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, length + page)
    base = np.frombuffer(memory, np.uint8)
    import ctypes

    assert libc.mprotect(ctypes.c_void_p(base.ctypes.data + length), page, 0) == 0
    copy = base[length - array.nbytes : length].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.skipif(not hasattr(mmap, "PROT_READ"), reason="needs mprotect")
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
def test_nothing_is_read_or_written_past_the_ends(isa, kind):
    for m, n, k in ((1, 33, 1), (1, 1, 33), (3, 17, 100), (19, 33, 31), (40, 100, 65)):
        weight = guarded(rng(14, n, k).standard_normal((n, k), np.float32))
        if kind in FLOATS:
            size = (-(-n // _products.panel_rows(isa)), _products.panel_bytes(kind, k, isa))
            packed = _products.pack(kind, weight, guarded(np.zeros(size, np.uint8)), isa=isa)
        else:
            codes, scales, minima = _products.quantize_weights(kind, weight, isa=isa)
            packed = guarded(_products.pack_codes(kind, guarded(codes), guarded(scales), None if minima is None else guarded(minima), isa=isa))
        x = guarded(rng(15).standard_normal((m, k), np.float32))
        x = x if kind in FLOATS else tuple(guarded(part) for part in activations(kind, x, isa)[0])
        out = guarded(np.zeros((m, n), np.float32))
        _products.product(kind, packed, n, k, x, bias=guarded(np.ones(n, np.float32)), out=out, isa=isa)
        _products.product(kind, packed, n, k, x, accumulate=True, out=out, isa=isa)
        assert np.isfinite(out).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
def test_a_row_comes_back_as_packed(isa, kind):
    for n, k in ((1, 1), (70, 33), (33, 517)):
        packed, exact = packed_weight(kind, rng(16, n, k).standard_normal((n, k), np.float32), isa)
        for row in {0, n // 2, n - 1}:
            got = _products.unpack_row(kind, packed, n, k, row, isa=isa)
            if kind == "int8-hadamard":
                np.testing.assert_allclose(got, hadamard(exact[row]), atol=1e-6)
            else:
                np.testing.assert_allclose(got, exact[row], rtol=0 if kind in FLOATS + ("int8", "int4") else 3e-7, atol=1e-7 * (kind == "int4m"))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("k", (64, 100))
def test_the_hadamard_basis_keeps_more_beside_a_number_that_stands_out(isa, k):
    weight, x = rng(17).standard_normal((50, k), np.float32), rng(18).standard_normal((9, k), np.float32)
    x[:, [5, 40]] *= 30
    error = {}
    for kind in ("int8", "int8-hadamard"):
        packed, _ = packed_weight(kind, weight, isa)
        error[kind] = np.abs(_products.product(kind, packed, 50, k, activations(kind, x, isa)[0], isa=isa) - x @ weight.T)
    assert error["int8-hadamard"].mean() < 0.7 * error["int8"].mean()
    assert error["int8-hadamard"].max() < 0.02 * np.abs(x @ weight.T).max()


@pytest.mark.parametrize("isa", ISAS)
def test_extreme_codes_do_not_saturate(isa):
    n, k, m = 65, 96, 8
    for code, sign in ((127, 1), (-127, 1), (127, -1), (-127, -1)):
        codes = np.full((n, k), code, np.int8).view(np.uint8)
        packed = _products.pack_codes("int8", codes, np.ones((n, 3), np.float32), isa=isa)
        x = _products.quantize_rows(np.full((m, k), sign * 127, np.float32), isa=isa)
        assert (_products.product("int8", packed, n, k, x, isa=isa) == float(code * sign * 127 * k)).all()
    for kind, minima in (("int4", None), ("int4m", np.full((n, 3), -8, np.float32))):
        for code in (0, 15):
            for sign in (1, -1):
                packed = _products.pack_codes(kind, np.full((n, k), code, np.uint8), np.ones((n, 3), np.float32), minima, isa=isa)
                x = _products.quantize_rows(np.full((m, k), sign * 127, np.float32), isa=isa)
                assert (_products.product(kind, packed, n, k, x, isa=isa) == float((code - 8) * sign * 127 * k)).all()


def test_arguments_are_checked():
    packed = _products.pack("float32", np.ones((40, 40), np.float32))
    x = np.ones((2, 40), np.float32)
    for call in (
        lambda: _products.product("float31", packed, 40, 40, x),
        lambda: _products.product("float32", packed, 400, 40, x),
        lambda: _products.product("float32", packed, 40, 40, x[:, :39]),
        lambda: _products.product("float32", packed, 40, 40, x, bias=np.ones(39, np.float32)),
        lambda: _products.product("float32", packed, 40, 40, x, out=np.ones((2, 39), np.float32)),
        lambda: _products.product("float32", packed, 40, 40, x, panels=(0, 99)),
        lambda: _products.product("float32", packed, 40, 40, x, accumulate=True),
        lambda: _products.product("float32", packed, 40, 40, x, isa="mmx"),
        lambda: _products.pack("int8", np.ones((4, 4), np.float32)),
        lambda: _products.pack_codes("int4", np.ones((4, 4), np.uint8), np.ones((4, 1), np.float32), np.ones((4, 1), np.float32)),
        lambda: _products.unpack_row("float32", packed, 40, 40, 40),
    ):
        with pytest.raises(OptionError):
            call()
