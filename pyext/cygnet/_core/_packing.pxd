"""Stored matrices on their way into packed weights; see pyext/_packing.pyx."""

from libc.stdint cimport int8_t, int64_t, uint8_t

from cygnet._core._linear cimport Linear

cdef extern from "dequantize.h":
    ctypedef struct cyg_quant_type:
        const char *name
        int block_size
        int block_bytes
        void (*dequantize)(const uint8_t *blocks, size_t n_blocks, float *out) noexcept nogil
        void (*unpack_int4)(const uint8_t *blocks, size_t n_blocks, uint8_t *codes, float *scales, float *minimums) noexcept nogil
        void (*unpack_int8)(const uint8_t *blocks, size_t n_blocks, int8_t *codes, float *scales) noexcept nogil
    const cyg_quant_type *cyg_quant_type_find(const char *name) noexcept nogil

cdef class Unpacked:
    """The stored rows of one part of a Weight, and where in the weight's memory they belong."""
    cdef Linear part
    cdef const cyg_quant_type *type
    cdef const uint8_t[::1] data
    cdef const int64_t[::1] rows  # which stored rows, in order; None: all
    cdef object memory            # keeps alive what `part` points to
