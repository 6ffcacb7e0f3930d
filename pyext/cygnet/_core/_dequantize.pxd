"""Declarations of csrc/dequantize.h for the other extensions."""

from libc.stdint cimport int8_t, uint8_t


cdef extern from "dequantize.h" nogil:
    int CYG_GROUP

    ctypedef struct cyg_quant_type:
        const char *name
        int block_size
        int block_bytes
        void (*dequantize)(const uint8_t *blocks, size_t n_blocks, float *out) noexcept nogil
        void (*unpack_int4)(const uint8_t *blocks, size_t n_blocks, uint8_t *codes, float *scales, float *minimums) noexcept nogil
        void (*unpack_int8)(const uint8_t *blocks, size_t n_blocks, int8_t *codes, float *scales) noexcept nogil

    const cyg_quant_type *cyg_quant_type_find(const char *name) noexcept
