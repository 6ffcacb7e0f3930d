"""Decoding by table: what each id adds to the text as bytes, found once and then only copied."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongAndOverflow, PyLong_CheckExact
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int16_t, uint8_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset



cdef struct piece:
    uint32_t begin        # in the table's bytes: how the id reads after others, then how it reads as the first
    uint32_t size
    uint32_t first_size
    int16_t byte          # value of a byte-fallback token, else -1
    uint8_t known         # 0: not looked up yet, 1: has text, 2: no such id
    uint8_t special


cdef struct buffer:
    uint8_t *data
    size_t size
    size_t capacity


cdef int reserve(buffer *b, size_t extra) except -1 nogil:
    cdef size_t capacity
    cdef uint8_t *data
    if b.size + extra <= b.capacity:
        return 0
    capacity = b.capacity + b.capacity // 2 + extra + 256
    data = <uint8_t *> realloc(b.data, capacity)
    if data == NULL:
        with gil:
            raise MemoryError
    b.data = data
    b.capacity = capacity
    return 0


cdef int append(buffer *b, const uint8_t *data, size_t size) except -1 nogil:
    reserve(b, size)
    memcpy(b.data + b.size, data, size)
    b.size += size
    return 0


cdef class DecodeTable:
    """Ids to text.

    Parameters
    ----------
    look_up : callable, id -> (bytes, bytes, int, bool) or None
        How the id reads after others, how as the first, its value where it is a byte-fallback token (else -1), whether it is special.
    strip : (int, int, int)
        A byte, and how many of it go off the left and off the right end of the whole text.
    """

    cdef object look_up
    cdef piece *pieces
    cdef size_t count
    cdef buffer texts
    cdef uint8_t strip_byte
    cdef Py_ssize_t strip_left
    cdef Py_ssize_t strip_right

    def __init__(self, look_up, strip=(0, 0, 0)):
        self.look_up = look_up
        self.strip_byte, self.strip_left, self.strip_right = strip

    def __dealloc__(self):
        free(self.pieces)
        free(self.texts.data)

    def decode(self, list ids, bint skip_special):
        """Text of ids; what is no valid UTF-8 becomes U+FFFD, in a run of byte-fallback tokens all of the run."""
        cdef buffer out
        memset(&out, 0, sizeof(out))
        try:
            with cython.critical_section(self):
                self.write(ids, skip_special, &out)
            return self.stripped(&out)
        finally:
            free(out.data)

    cdef int write(self, list ids, bint skip_special, buffer *out) except -1:
        cdef Py_ssize_t i, run = -1
        cdef long number
        cdef int beyond
        cdef bint first = True
        cdef piece *p
        reserve(out, 8 * len(ids))
        for i in range(len(ids)):
            if not PyLong_CheckExact(ids[i]):
                raise TypeError("token ids of another type than int")
            number = PyLong_AsLongAndOverflow(ids[i], &beyond)
            if beyond != 0 or number < 0:
                raise TypeError("token ids that are negative or beyond 64 bits")
            p = self.find(number)
            if p == NULL or (skip_special and p.special):
                continue
            if p.byte >= 0:
                if run < 0:
                    run = out.size
                reserve(out, 1)
                out.data[out.size] = <uint8_t> p.byte
                out.size += 1
            else:
                if run >= 0:
                    end_run(out, run)
                    run = -1
                if first:
                    append(out, self.texts.data + p.begin + p.size, p.first_size)
                else:
                    append(out, self.texts.data + p.begin, p.size)
            first = False
        if run >= 0:
            end_run(out, run)
        return 0

    cdef piece *find(self, long number) except? NULL:
        """The piece of an id, or NULL for an id that is not there."""
        cdef piece *p
        if number < 0 or number > 0x7FFFFFFF:
            return NULL
        if <size_t> number >= self.count:
            if self.look_up(number) is None:
                return NULL
            self.grow(number + 1)
        p = &self.pieces[number]
        if not p.known:
            self.fill(p, number)
        return p if p.known == 1 else NULL

    cdef int grow(self, size_t count) except -1:
        cdef piece *pieces
        count += count // 2 + 1024
        pieces = <piece *> realloc(self.pieces, count * sizeof(piece))
        if pieces == NULL:
            raise MemoryError
        memset(pieces + self.count, 0, (count - self.count) * sizeof(piece))
        self.pieces = pieces
        self.count = count
        return 0

    cdef int fill(self, piece *p, long number) except -1:
        found = self.look_up(number)
        if found is None:
            p.known = 2
            return 0
        rest, first, byte, special = found
        p.begin = <uint32_t> self.texts.size
        p.size = <uint32_t> len(<bytes> rest)
        p.first_size = <uint32_t> len(<bytes> first)
        append(&self.texts, <const uint8_t *> PyBytes_AS_STRING(rest), p.size)
        append(&self.texts, <const uint8_t *> PyBytes_AS_STRING(first), p.first_size)
        p.byte = byte
        p.special = special
        p.known = 1
        return 0

    cdef str stripped(self, buffer *out):
        cdef size_t begin = 0, end = out.size
        cdef Py_ssize_t n = self.strip_left
        while n > 0 and begin < end and out.data[begin] == self.strip_byte:
            begin += 1
            n -= 1
        n = self.strip_right
        while n > 0 and begin < end and out.data[end - 1] == self.strip_byte:
            end -= 1
            n -= 1
        return PyUnicode_DecodeUTF8(<const char *> out.data + begin, end - begin, "replace") if end > begin else ""


cdef int end_run(buffer *out, size_t begin) except -1:
    """Bytes from `begin` on are valid UTF-8, or each of them becomes U+FFFD."""
    cdef size_t size = out.size - begin, i
    try:
        PyUnicode_DecodeUTF8(<const char *> out.data + begin, size, NULL)
    except UnicodeDecodeError:
        reserve(out, 2 * size)
        for i in range(size):
            memcpy(out.data + begin + 3 * i, b"\xef\xbf\xbd", 3)
        out.size = begin + 3 * size
    return 0
