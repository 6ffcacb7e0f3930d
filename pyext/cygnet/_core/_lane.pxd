from libc.stdint cimport int32_t, uint8_t


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
