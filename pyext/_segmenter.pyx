"""What the models share that cut a text or a word into pieces of a vocabulary: scratch memory, unknown stretches, ranges in characters."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, realloc

from cygnet._core._lane cimport Workspace, cyg_ids_push


cdef class Scratch(Workspace):
    """Ids, where asked for the byte range behind each, the normalised text, and one block of memory that a segmenter uses as it likes."""

    def __dealloc__(self):
        free(self.ranges.data)
        free(self.memory)
        cyg_text_free(&self.text)

    cdef void *need(self, size_t size) noexcept nogil:
        """The block, of at least so many bytes; NULL out of memory. Its content is kept when it grows."""
        cdef void *memory
        if size > self.room:
            memory = realloc(self.memory, size + size // 2)
            if memory == NULL:
                return NULL
            self.memory = memory
            self.room = size + size // 2
        return self.memory

    cdef int emit(self, int32_t id, size_t start, size_t end) noexcept nogil:
        if self.keep_ranges and (cyg_ids_push(&self.ranges, <int32_t> start) or cyg_ids_push(&self.ranges, <int32_t> end)):
            return -1
        return cyg_ids_push(&self.ids, id)


cdef class Segmenter:
    """Base of the segmenters; a subclass overrides segment().

    Parameters
    ----------
    unknown : int or None
        Id of what no piece covers.
    byte_ids : sequence of 256 (int or None), optional
        Ids of the byte pieces: with them an unknown stretch is spelled in bytes, as far as all its bytes have a piece.

    Attributes
    ----------
    last_byte_has_all : bool
        Of the byte pieces of a character the last has the character's range and the others an empty one before it; otherwise each has
        that of the whole stretch.
    """

    def __init__(self, unknown, byte_ids=None):
        cdef int i
        self.unknown = -1 if unknown is None else unknown
        self.byte_fallback = byte_ids is not None
        for i in range(256):
            self.bytes[i] = -1 if byte_ids is None or byte_ids[i] is None else byte_ids[i]

    cdef Scratch scratch(self):
        """Memory of the kind that segment() expects."""
        return Scratch()

    cdef int segment(self, Scratch space, const uint8_t *text, size_t size) noexcept nogil:
        """Appends the pieces of valid UTF-8. 0, 1 where the text needs an unknown piece and there is none, -1 out of memory."""
        return 0

    cdef int emit_unknown(self, Scratch space, const uint8_t *text, size_t start, size_t end) noexcept nogil:
        """Appends what stands for an uncovered stretch; return value as of segment()."""
        cdef size_t i, stop
        cdef bint spelled = self.byte_fallback
        for i in range(start, end):
            spelled = spelled and self.bytes[text[i]] >= 0
        if spelled:
            for i in range(start, end):
                stop = end
                if self.last_byte_has_all:
                    stop = i + 1 if i + 1 == end or (text[i + 1] & 0xC0) != 0x80 else start
                if space.emit(self.bytes[text[i]], start, stop):
                    return -1
                if self.last_byte_has_all and stop > start:
                    start = stop
            return 0
        if self.unknown < 0:
            return 1
        return space.emit(self.unknown, start, end)

    cdef int put(self, Scratch space, const uint8_t *text, int32_t id, size_t start, size_t end) noexcept nogil:
        """Appends a piece; unknown ones (-1 or the unknown id) in a row become one. finish() must follow the last."""
        cdef int failed
        if id < 0 or id == self.unknown:
            if space.unknown_start == space.unknown_end:
                space.unknown_start = start
            space.unknown_end = end
            return 0
        failed = self.finish(space, text)
        return failed if failed else space.emit(id, start, end)

    cdef int finish(self, Scratch space, const uint8_t *text) noexcept nogil:
        """Appends the unknown stretch that put() holds back."""
        cdef int failed = 0
        if space.unknown_start < space.unknown_end:
            failed = self.emit_unknown(space, text, space.unknown_start, space.unknown_end)
        space.unknown_start = space.unknown_end = 0
        return failed

    def pieces(self, str text):
        """(id, start, end) of the pieces, in characters; None where the text needs an unknown piece and there is none."""
        cdef bytes data = text.encode()
        cdef Scratch space = self.scratch()
        cdef int failed
        cdef Py_ssize_t i
        cdef list chars
        if len(data) > 0x7FFFFFFF:
            raise OverflowError("text of more than 2**31 - 1 bytes")
        space.keep_ranges = True
        failed = self.segment(space, <const uint8_t *> <const char *> data, len(data))
        if failed < 0:
            raise MemoryError
        if failed:
            return None
        chars = char_positions(data)
        return [(space.ids.data[i], chars[space.ranges.data[2 * i]], chars[space.ranges.data[2 * i + 1]]) for i in range(<Py_ssize_t> space.ids.size)]


cdef list char_positions(bytes data):
    """Number of characters before each byte position of UTF-8."""
    cdef Py_ssize_t i, count = 0, size = len(data)
    cdef const uint8_t *text = <const uint8_t *> <const char *> data
    cdef list out = []
    for i in range(size):
        if (text[i] & 0xC0) != 0x80:
            count += 1
        out.append(count - 1)
    out.append(count)
    return out
