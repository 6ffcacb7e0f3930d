"""The plain element types a weights file may hold, and how each widens to float32.

Names are those of the safetensors specification. 8-bit floats follow the OCP FP8 paper (arXiv:2209.05433) and its FNUZ variant (arXiv:2206.02915).
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from cygnet._core._dequantize import dequantize


class PlainType(NamedTuple):
    """One element type: bytes an element, and the little-endian NumPy type where NumPy has one."""

    name: str
    itemsize: int
    numpy: str | None


PLAIN_TYPES = {
    name: PlainType(name, itemsize, numpy)
    for name, itemsize, numpy in [
        ("F64", 8, "<f8"),
        ("F32", 4, "<f4"),
        ("F16", 2, "<f2"),
        ("BF16", 2, None),
        ("F8_E4M3", 1, None),
        ("F8_E5M2", 1, None),
        ("F8_E4M3FNUZ", 1, None),
        ("F8_E5M2FNUZ", 1, None),
        ("F8_E8M0", 1, None),
        ("I64", 8, "<i8"),
        ("I32", 4, "<i4"),
        ("I16", 2, "<i2"),
        ("I8", 1, "i1"),
        ("U64", 8, "<u8"),
        ("U32", 4, "<u4"),
        ("U16", 2, "<u2"),
        ("U8", 1, "u1"),
        ("BOOL", 1, "?"),
        ("C64", 8, "<c8"),
    ]
}
NAME_OF_NUMPY = {np.dtype(plain.numpy): plain.name for plain in PLAIN_TYPES.values() if plain.numpy}

# (exponent bits, mantissa bits, exponent bias) of each signed 8-bit float.
_FLOAT8 = {"F8_E4M3": (4, 3, 7), "F8_E5M2": (5, 2, 15), "F8_E4M3FNUZ": (4, 3, 8), "F8_E5M2FNUZ": (5, 2, 16)}


@cache
def float8_table(name):
    """All 256 values of an 8-bit float type.

    Parameters
    ----------
    name : str
        One of the ``F8_`` names.

    Returns
    -------
    (256,) float32
        Entry ``c`` is the value of byte ``c``.

    Examples
    --------
    >>> float(float8_table("F8_E4M3")[0x7E])
    448.0
    """
    codes = np.arange(256)
    if name == "F8_E8M0":
        table = np.ldexp(1.0, codes - 127)
        table[255] = np.nan
        return table.astype(np.float32)
    exponent_bits, mantissa_bits, bias = _FLOAT8[name]
    exponent = codes >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = codes & (1 << mantissa_bits) - 1
    normal = exponent > 0
    significand = mantissa + (normal << mantissa_bits)
    table = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - bias - mantissa_bits)
    if name == "F8_E4M3":
        table[codes & 0x7F == 0x7F] = np.nan
    elif name == "F8_E5M2":
        table[codes & 0x7F == 0x7C] = np.inf
        table[codes & 0x7F > 0x7C] = np.nan
    table = np.where(codes & 0x80, -table, table)
    if name.endswith("FNUZ"):
        table[0x80] = np.nan
    return table.astype(np.float32)


def widen(name, raw):
    """Bytes of a plain type as float32: exact for every float type up to 32 bits, rounded to nearest for F64 and wide integers.

    Parameters
    ----------
    name : str
        A key of `PLAIN_TYPES`, not ``C64``.
    raw : (n * itemsize,) uint8

    Returns
    -------
    (n,) float32
        A view of `raw` where the type is F32 and aligned, else a new array.
    """
    if name in ("F16", "BF16"):
        return dequantize(name, raw)
    if name.startswith("F8_"):
        return float8_table(name)[raw]
    values = raw.view(PLAIN_TYPES[name].numpy)
    with np.errstate(over="ignore"):
        return np.require(values.astype(np.float32, copy=False), requirements="A")
