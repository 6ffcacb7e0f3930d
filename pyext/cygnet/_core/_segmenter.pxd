from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from cygnet._core._lane cimport Workspace, cyg_ids


cdef extern from "text_buffer.h" nogil:
    ctypedef struct cyg_text:
        uint8_t *bytes
        size_t *origins
        size_t size
        size_t source_end
        size_t room
        bint aligned
    int cyg_text_put(cyg_text *text, const uint8_t *bytes, size_t size, size_t start, size_t end)
    int cyg_text_copy(cyg_text *text, const uint8_t *bytes, size_t size, size_t start)
    int cyg_text_slack(cyg_text *text, size_t extra)
    void cyg_text_free(cyg_text *text)


cdef class Scratch(Workspace):
    cdef cyg_ids ranges
    cdef bint keep_ranges
    cdef cyg_text text
    cdef void *memory
    cdef size_t room
    cdef size_t unknown_start
    cdef size_t unknown_end
    cdef void *need(self, size_t size) noexcept nogil
    cdef int emit(self, int32_t id, size_t start, size_t end) noexcept nogil


cdef class Segmenter:
    cdef int32_t unknown
    cdef int32_t[256] bytes
    cdef bint byte_fallback
    cdef public bint last_byte_has_all
    cdef Scratch scratch(self)
    cdef int segment(self, Scratch space, const uint8_t *text, size_t size) noexcept nogil
    cdef int put(self, Scratch space, const uint8_t *text, int32_t id, size_t start, size_t end) noexcept nogil
    cdef int finish(self, Scratch space, const uint8_t *text) noexcept nogil
    cdef int emit_unknown(self, Scratch space, const uint8_t *text, size_t start, size_t end) noexcept nogil
