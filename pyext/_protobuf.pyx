"""Reading of protocol buffer messages without a schema (the wire format of protobuf.dev), every length checked."""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.math cimport isfinite
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

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


cdef enum:
    NO_FIELD = -1
    UNKNOWN_WIRE_TYPE = -2
    CUT_OFF = -3


# Of a varint its value, of everything else where its bytes lie.
cdef struct Field:
    uint64_t number
    int wire
    uint64_t value
    Py_ssize_t begin
    Py_ssize_t end


cdef Py_ssize_t read_field(const unsigned char *data, Py_ssize_t at, Py_ssize_t size, Field *field) noexcept nogil:
    """Position after the field that begins here, or what is wrong with it."""
    cdef uint64_t key = 0, length = 0
    at = read_varint(data, at, size, &key)
    field.number, field.wire = key >> 3, key & 7
    if at < 0 or field.number == 0 or key >> 32:
        return NO_FIELD
    if field.wire == VARINT:
        at = read_varint(data, at, size, &field.value)
        return at if at >= 0 else CUT_OFF
    if field.wire == BYTES:
        at = read_varint(data, at, size, &length)
    elif field.wire == FIXED64 or field.wire == FIXED32:
        length = 8 if field.wire == FIXED64 else 4
    else:
        return UNKNOWN_WIRE_TYPE
    if at < 0 or length > <uint64_t> (size - at):
        return CUT_OFF
    field.begin, field.end = at, at + <Py_ssize_t> length
    return field.end


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
    cdef Py_ssize_t begin = 0, at, size = len(message)
    cdef Field field
    cdef list out = []
    while begin < size:
        at = read_field(data, begin, size, &field)
        if at == NO_FIELD:
            raise TokenizerError(f"{where}: no protocol buffer field begins at byte {begin}")
        if at == UNKNOWN_WIRE_TYPE:
            raise TokenizerError(f"{where}: field {field.number} at byte {begin} has the unknown wire type {field.wire}")
        if at == CUT_OFF:
            raise TokenizerError(f"{where}: field {field.number} at byte {begin} reaches past the end of its message of {size} bytes")
        out.append((field.number, field.value if field.wire == VARINT else message[field.begin:field.end]))
        begin = at
    return out


def read_pieces(bytes model):
    """The pieces of a SentencePiece model, without an object for each of their fields.

    Returns
    -------
    (list of str, list of float, bytes, list of (int, int or bytes)) or None
        Texts, scores and types by id, and the other fields; None where anything is not as usual.
    """
    cdef const unsigned char *data = <const unsigned char *> <const char *> model
    cdef Py_ssize_t at = 0, size = len(model), text_begin, text_end
    cdef Field field
    cdef float score
    cdef uint64_t kind
    cdef list texts = [], scores = [], others = []
    cdef bytearray kinds = bytearray()
    while at < size:
        at = read_field(data, at, size, &field)
        if at < 0:
            return None
        if field.number != 1:
            others.append((field.number, field.value if field.wire == VARINT else model[field.begin:field.end]))
            continue
        text_begin = text_end = 0
        score, kind = 0, 1
        if field.wire != BYTES or not read_piece(data, field.begin, field.end, &text_begin, &text_end, &score, &kind):
            return None
        try:
            texts.append(PyUnicode_DecodeUTF8(<const char *> data + text_begin, text_end - text_begin, NULL))
        except UnicodeDecodeError:
            return None
        scores.append(score)
        kinds.append(kind)
    return texts, scores, bytes(kinds), others


cdef bint read_piece(
    const unsigned char *data, Py_ssize_t at, Py_ssize_t size, Py_ssize_t *text_begin, Py_ssize_t *text_end, float *score, uint64_t *kind
) noexcept nogil:
    """Text, score and type of one piece; False where anything is not as usual."""
    cdef Field field
    while at < size:
        at = read_field(data, at, size, &field)
        if at < 0:
            return False
        if field.number == 1 and field.wire == BYTES:
            text_begin[0], text_end[0] = field.begin, field.end
        elif field.number == 2 and field.wire == FIXED32:
            memcpy(score, data + field.begin, sizeof(float))
        elif field.number == 3 and field.wire == VARINT:
            kind[0] = field.value
        else:
            return False
    return text_end[0] > text_begin[0] and isfinite(score[0]) and 1 <= kind[0] <= 6
