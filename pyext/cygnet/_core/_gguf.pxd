"""Strings in GGUF metadata; see pyext/_gguf.pyx."""

cdef class Strings:
    """An array of strings in a file: of each its length in eight bytes, then its bytes."""
    cdef const unsigned char[::1] data
    cdef const unsigned char *start
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t nbytes
    cdef list cut(self, bint decode)
