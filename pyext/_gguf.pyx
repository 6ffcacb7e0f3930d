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


def skip_strings(const unsigned char[::1] data, Py_ssize_t offset, Py_ssize_t count):
    """Where an array of strings ends.

    Parameters
    ----------
    data : (n,) uint8
        The file.
    offset : int
        Start of the first string's length, 0 to n.
    count : int

    Returns
    -------
    int
        Offset after the last string; -1 - i if string i does not lie inside `data`.
    """
    cdef Py_ssize_t end
    with nogil:
        end = end_of_strings(&data[0] if data.shape[0] else NULL, data.shape[0], offset, count)
    return end


def cut_strings(const unsigned char[::1] data, Py_ssize_t offset, Py_ssize_t count, bint decode):
    """The strings of an array that `skip_strings` has accepted.

    Parameters
    ----------
    data : (n,) uint8
    offset : int
    count : int
    decode : bool
        Give str (bytes that are not UTF-8 become lone surrogates, as ``surrogateescape`` has it) instead of bytes.

    Returns
    -------
    list of str or bytes
    """
    cdef Py_ssize_t i, length
    cdef const char *start
    cdef list result = []
    for i in range(count):
        length = <Py_ssize_t>read_length(&data[offset])
        start = <const char *>&data[0] + offset + 8
        if decode:
            result.append(PyUnicode_DecodeUTF8(start, length, "surrogateescape"))
        else:
            result.append(PyBytes_FromStringAndSize(start, length))
        offset += 8 + length
    return result
