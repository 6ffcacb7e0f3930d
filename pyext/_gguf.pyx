"""Length-prefixed strings of GGUF metadata: checked and cut without a Python call a string."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint64_t


cdef inline uint64_t read_length(const unsigned char *data) noexcept nogil:
    cdef uint64_t length = 0
    cdef int i
    for i in range(8):
        length |= <uint64_t>data[i] << (8 * i)
    return length


cdef Py_ssize_t end_of_strings(const unsigned char *data, Py_ssize_t size, Py_ssize_t offset, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint64_t length
    for i in range(count):
        if size - offset < 8:
            return -1 - i
        length = read_length(data + offset)
        if length > <uint64_t>(size - offset - 8):
            return -1 - i
        offset += 8 + <Py_ssize_t>length
    return offset


cdef class Strings:
    """An array of strings where it lies in a file; Python's strings are made only when asked for.

    Parameters
    ----------
    data : (n,) uint8
        The file.
    offset : int
        Start of the first string's length, 0 to n.
    count : int

    Attributes
    ----------
    count : int
    nbytes : int
        What the array takes in the file; -1 - i if string i does not lie inside of it: then nothing else may be asked for.
    """

    def __init__(self, const unsigned char[::1] data, Py_ssize_t offset, Py_ssize_t count):
        cdef Py_ssize_t end
        self.data, self.count = data, count
        self.start = &data[0] + offset if data.shape[0] else NULL
        with nogil:
            end = end_of_strings(self.start, data.shape[0] - offset, 0, count)
        self.nbytes = end

    def decoded(self):
        """The strings as a list of str; bytes that are not UTF-8 become lone surrogates, as ``surrogateescape`` has it."""
        return self.cut(True)

    def raw(self):
        """The strings as a list of bytes."""
        return self.cut(False)

    cdef list cut(self, bint decode):
        cdef Py_ssize_t i, length
        cdef const char *at = <const char *>self.start
        cdef list result = []
        for i in range(self.count):
            length = <Py_ssize_t>read_length(<const unsigned char *>at)
            if decode:
                result.append(PyUnicode_DecodeUTF8(at + 8, length, "surrogateescape"))
            else:
                result.append(PyBytes_FromStringAndSize(at + 8, length))
            at += 8 + length
        return result
