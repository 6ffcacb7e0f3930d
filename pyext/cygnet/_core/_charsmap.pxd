# Character maps of SentencePiece: lookups for the normalizing lanes.
from libc.stdint cimport uint32_t


cdef class Charsmap:
    cdef bytes _blob
    cdef const unsigned char *_units
    cdef Py_ssize_t _unit_count
    cdef const char *_texts
    cdef Py_ssize_t _text_size
    cdef uint32_t unit(self, size_t node) noexcept nogil
    cdef Py_ssize_t find(self, const char *key, Py_ssize_t size, bint longest, Py_ssize_t *length) noexcept nogil
    cdef Py_ssize_t text_length(self, Py_ssize_t place) noexcept nogil
    cdef bint begins(self, unsigned char byte) noexcept nogil
