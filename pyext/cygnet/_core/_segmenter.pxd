from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from cygnet._core._lane cimport Workspace, cyg_ids


cdef class Scratch(Workspace):
    cdef cyg_ids ranges
    cdef bint keep_ranges
    cdef void *memory
    cdef size_t room
    cdef void *need(self, size_t size) noexcept nogil
    cdef int emit(self, int32_t id, size_t start, size_t end) noexcept nogil


cdef class Segmenter:
    cdef int32_t unknown
    cdef int32_t[256] bytes
    cdef bint byte_fallback
    cdef int segment(self, Scratch space, const uint8_t *text, size_t size) noexcept nogil
    cdef int emit_unknown(self, Scratch space, const uint8_t *text, size_t start, size_t end) noexcept nogil
