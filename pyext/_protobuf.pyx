"""Reading of protocol buffer messages without a schema (the wire format of protobuf.dev), every length checked."""

from libc.stdint cimport uint64_t

from cygnet.errors import TokenizerError

cdef enum:
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


cdef Py_ssize_t read_varint(const unsigned char *data, Py_ssize_t at, Py_ssize_t size, uint64_t *value) noexcept nogil:
    """Position after the number that begins here, or -1."""
    cdef int shift = 0
    value[0] = 0
    while at < size and shift < 64:
        value[0] |= <uint64_t> (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return at
        shift += 7
    return -1


def fields(bytes message, str where):
    """Fields of a message, in order.

    Parameters
    ----------
    message : bytes
    where : str
        Name of the message in error messages.

    Returns
    -------
    list of (int, int or bytes)
        Field number and value: an int for a varint, the bytes of everything else.

    Raises
    ------
    TokenizerError
        Where the message is cut off or no protocol buffer.
    """
    cdef const unsigned char *data = <const unsigned char *> <const char *> message
    cdef Py_ssize_t at = 0, size = len(message), length, begin
    cdef uint64_t key = 0, value = 0
    cdef int wire
    cdef list out = []
    while at < size:
        begin = at
        at = read_varint(data, at, size, &key)
        wire = key & 7
        if at < 0 or key >> 3 == 0 or key >> 32:
            raise TokenizerError(f"{where}: no protocol buffer field begins at byte {begin}")
        if wire == VARINT:
            at = read_varint(data, at, size, &value)
            if at >= 0:
                out.append((key >> 3, value))
                continue
            length = size + 1
        elif wire == BYTES:
            at = read_varint(data, at, size, &value)
            length = <Py_ssize_t> value if at >= 0 and value <= <uint64_t> size else size + 1
        elif wire == FIXED64 or wire == FIXED32:
            length = 8 if wire == FIXED64 else 4
        else:
            raise TokenizerError(f"{where}: field {key >> 3} at byte {begin} has the unknown wire type {wire}")
        if at < 0 or length > size - at:
            raise TokenizerError(f"{where}: field {key >> 3} at byte {begin} reaches past the end of its message of {size} bytes")
        out.append((key >> 3, message[at:at + length]))
        at += length
    return out
