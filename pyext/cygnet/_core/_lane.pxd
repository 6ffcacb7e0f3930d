from libc.stdint cimport int32_t, uint8_t, uint32_t


cdef extern from "cyg_ids.h" nogil:
    ctypedef struct cyg_ids:
        int32_t *data
        size_t size
        size_t capacity
    int cyg_ids_reserve(cyg_ids *ids, size_t extra)
    int cyg_ids_push(cyg_ids *ids, int32_t id)


cdef class Workspace:
    cdef cyg_ids ids
    cdef void *state


cdef class Lane:
    cpdef Workspace workspace(self)
    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil


cdef class Marks:
    cdef list texts
    cdef const uint8_t **text_of
    cdef size_t *length_of
    cdef int32_t *id_of
    cdef uint8_t *strips
    cdef uint32_t[257] begin
    cdef int only_first_byte
    cdef Py_ssize_t match(self, const uint8_t *at, const uint8_t *end) noexcept nogil
    cdef size_t bound(self, size_t low, size_t high, size_t depth, int byte) noexcept nogil
    cdef const uint8_t *find(self, const uint8_t *at, const uint8_t *end, Py_ssize_t *which) noexcept nogil
    cdef const uint8_t *widen(self, Py_ssize_t which, const uint8_t **at, const uint8_t *begin, const uint8_t *end) noexcept nogil
