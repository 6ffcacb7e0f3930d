# Character maps of SentencePiece: lookups for the normalizing lanes.
from libc.stdint cimport int32_t, uint8_t, uint32_t


cdef class Charsmap:
    cdef bytes _blob
    cdef const unsigned char *_units
    cdef Py_ssize_t _unit_count
    cdef const char *_texts
    cdef Py_ssize_t _text_size
    # Place of the replacement of each character of the first plane, -1 for none.
    cdef int32_t *_single
    cdef Py_ssize_t find(self, const char *key, Py_ssize_t size, bint longest, Py_ssize_t *length) noexcept nogil
    cdef Py_ssize_t text_length(self, Py_ssize_t place) noexcept nogil
    cdef bint begins(self, const uint8_t *key, size_t size) noexcept nogil
    cdef Py_ssize_t find_single(self, uint32_t code, const char *key, Py_ssize_t size) noexcept nogil
    cdef int _fill_single(self) except -1
