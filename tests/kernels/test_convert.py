"""Half-precision conversions of every instruction set, every bit pattern of the narrow types."""

import numpy as np
import pytest

from cygnet._core import _kernels
from cygnet.errors import OptionError
from cygnet.reference import quantization

NARROW = {"float16": quantization.to_float16, "bfloat16": quantization.to_bfloat16}
WIDEN = {"float16": quantization.from_float16, "bfloat16": quantization.from_bfloat16}


@pytest.fixture(params=["float16", "bfloat16"])
def kind(request):
    return request.param


def widen(kind, bits, isa):
    out = np.empty(bits.shape, np.float32)
    _kernels.widen(kind, bits, out, isa)
    return out


def narrow(kind, x, isa):
    out = np.empty(x.shape, np.uint16)
    _kernels.narrow(kind, x, out, isa)
    return out


def test_every_pattern_widens_and_comes_back(kind, isa):
    bits = np.arange(65536, dtype=np.uint16)
    wide = widen(kind, bits, isa)
    assert np.array_equal(wide, WIDEN[kind](bits), equal_nan=True)
    number = ~np.isnan(wide)
    assert np.array_equal(narrow(kind, wide, isa)[number], bits[number])
    assert np.isnan(widen(kind, narrow(kind, wide[~number], isa), isa)).all()


def test_rounding_is_to_nearest_even(kind, isa):
    exact = WIDEN[kind](np.arange(0x7C00 if kind == "float16" else 0x7F80, dtype=np.uint16)).astype(np.float64)
    middle = ((exact[:-1] + exact[1:]) / 2).astype(np.float32)
    around = np.concatenate([middle, np.nextafter(middle, np.float32(0)), np.nextafter(middle, np.float32(np.inf))])
    around = np.concatenate([around, -around, np.array([65519.9, 65520, 1e30, np.inf, 3.39e38, 1e-45, 2.98e-8, 2.9803e-8], np.float32)])
    assert np.array_equal(narrow(kind, around, isa), NARROW[kind](around))


def test_tails_and_guards(kind, isa, sizes, guarded):
    rng = np.random.default_rng(1)
    for n in sizes:
        x = rng.standard_normal(n, np.float32)
        out, back = guarded(np.zeros(n, np.uint16)), guarded(np.zeros(n, np.float32))
        _kernels.narrow(kind, guarded(x), out, isa)
        assert np.array_equal(out, NARROW[kind](x))
        _kernels.widen(kind, out, back, isa)
        assert np.array_equal(back, WIDEN[kind](out))


def test_unknown_kind_is_refused():
    with pytest.raises(OptionError, match="float8"):
        _kernels.widen("float8", np.zeros(1, np.uint16), np.zeros(1, np.float32))
