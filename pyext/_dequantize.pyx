"""GGUF blocks to float32, or to small integers with scales where that loses nothing (csrc/dequantize.h)."""

from libc.stdint cimport int8_t, uint8_t

import numpy as np

from cygnet.errors import OptionError


cdef const cyg_quant_type *find_type(str name) except NULL:
    cdef const cyg_quant_type *kind = cyg_quant_type_find(name.encode())
    if kind == NULL:
        raise OptionError(f"no GGUF type {name!r} is decoded")
    return kind


cdef size_t count_blocks(str name, const cyg_quant_type *kind, const uint8_t[::1] raw) except? 0:
    if raw.shape[0] % kind.block_bytes:
        raise OptionError(f"{raw.shape[0]} bytes are no whole number of {name} blocks of {kind.block_bytes} bytes")
    return <size_t>(raw.shape[0] // kind.block_bytes)


def dequantize(str name, const uint8_t[::1] raw):
    """The weights of whole blocks.

    Parameters
    ----------
    name : str
        ``F32``, ``F16``, ``BF16``, or a block type such as ``Q4_K``.
    raw : (n_blocks * block_bytes,) uint8

    Returns
    -------
    (n_blocks * block_size,) float32

    Raises
    ------
    OptionError
        For another type or a broken block.

    Examples
    --------
    >>> dequantize("BF16", np.array([0x80, 0x3F], np.uint8))
    array([1.], dtype=float32)
    """
    cdef const cyg_quant_type *kind = find_type(name)
    cdef size_t blocks = count_blocks(name, kind, raw)
    out = np.empty(blocks * kind.block_size, np.float32)
    cdef float[::1] view = out
    if blocks:
        with nogil:
            kind.dequantize(&raw[0], blocks, &view[0])
    return out


def unpack_int4(str name, const uint8_t[::1] raw, Py_ssize_t n_groups):
    """Blocks as 4-bit codes: weight = scale * code + minimum in float32, equal to `dequantize` for finite scales.

    Parameters
    ----------
    name : str
        ``Q4_0``, ``Q4_1`` or ``Q4_K``.
    raw : (n_bytes,) uint8
        Whole blocks of `n_groups` * 32 weights.
    n_groups : int
        Groups of 32 weights that share a scale.

    Returns
    -------
    codes : (n_groups, 32) uint8
        0 to 15.
    scales : (n_groups,) float32
    minimums : (n_groups,) float32

    Raises
    ------
    OptionError
        For another type, or if `raw` does not hold `n_groups` groups.
    """
    cdef const cyg_quant_type *kind = find_type(name)
    cdef size_t blocks = count_blocks(name, kind, raw)
    if kind.unpack_int4 == NULL:
        raise OptionError(f"{name} has no exact form with 4-bit codes and groups of 32; dequantise it")
    check_groups(name, blocks * kind.block_size, n_groups)
    codes = np.empty((n_groups, CYG_GROUP), np.uint8)
    scales, minimums = np.empty(n_groups, np.float32), np.empty(n_groups, np.float32)
    cdef uint8_t[:, ::1] codes_view = codes
    cdef float[::1] scales_view = scales
    cdef float[::1] minimums_view = minimums
    if blocks:
        with nogil:
            kind.unpack_int4(&raw[0], blocks, &codes_view[0, 0], &scales_view[0], &minimums_view[0])
    return codes, scales, minimums


def unpack_int8(str name, const uint8_t[::1] raw, Py_ssize_t n_groups):
    """Blocks as signed 8-bit codes: weight = scale * code in float32, equal to `dequantize`.

    Parameters
    ----------
    name : str
        ``Q8_0``, ``Q5_0``, ``IQ4_NL`` or ``IQ4_XS``.
    raw : (n_bytes,) uint8
        Whole blocks of `n_groups` * 32 weights.
    n_groups : int
        Groups of 32 weights that share a scale.

    Returns
    -------
    codes : (n_groups, 32) int8
    scales : (n_groups,) float32

    Raises
    ------
    OptionError
        For another type, or if `raw` does not hold `n_groups` groups.
    """
    cdef const cyg_quant_type *kind = find_type(name)
    cdef size_t blocks = count_blocks(name, kind, raw)
    if kind.unpack_int8 == NULL:
        raise OptionError(f"{name} has no exact form with 8-bit codes and groups of 32; dequantise it")
    check_groups(name, blocks * kind.block_size, n_groups)
    codes, scales = np.empty((n_groups, CYG_GROUP), np.int8), np.empty(n_groups, np.float32)
    cdef int8_t[:, ::1] codes_view = codes
    cdef float[::1] scales_view = scales
    if blocks:
        with nogil:
            kind.unpack_int8(&raw[0], blocks, &codes_view[0, 0], &scales_view[0])
    return codes, scales


cdef int check_groups(str name, size_t weights, Py_ssize_t n_groups) except -1:
    if n_groups < 0 or weights != <size_t>n_groups * CYG_GROUP:
        raise OptionError(f"the {name} blocks hold {weights} weights, not {n_groups} groups of {CYG_GROUP}")
    return 0
