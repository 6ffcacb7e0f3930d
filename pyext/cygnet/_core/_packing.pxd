"""Stored matrices on their way into packed weights; see pyext/_packing.pyx."""

from libc.stdint cimport int64_t, uint8_t

from cygnet._core._dequantize cimport cyg_quant_type
from cygnet._core._linear cimport Linear

cdef class Unpacked:
    """The stored rows of one part of a Weight, and where in the weight's memory they belong."""
    cdef Linear part
    cdef const cyg_quant_type *type
    cdef const uint8_t[::1] data
    cdef const int64_t[::1] rows  # which stored rows, in order; None: all
    cdef object memory            # keeps alive what `part` points to
