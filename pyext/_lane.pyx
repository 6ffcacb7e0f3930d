"""The compiled way from text to ids: what a model's lane must do, and the added tokens that are cut out before it.

A lane takes one stretch of UTF-8 without added tokens through normalizer, pre-tokenizer and model in one call without the GIL.
Scratch memory and caches live in a Workspace; each running call owns one, so no lane needs a lock.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memchr

from cygnet._core._unicode cimport cyg_is_space


cdef class Workspace:
    """Ids of the text at hand, and the scratch memory and caches of a lane: a subclass owns them and points `state` at them."""

    def __dealloc__(self):
        free(self.ids.data)


cdef class Lane:
    """Base of the lanes; a subclass overrides both methods."""

    cpdef Workspace workspace(self):
        """A fresh workspace of the kind that encode() expects."""
        return Workspace()

    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        """Appends the ids of a stretch of valid UTF-8 to space.ids; first: it begins the whole text.

        0 for success, 1 where this text must go stage by stage, -1 out of memory.
        """
        return 0


cdef class Marks:
    """Strings that are cut out of the text, by their UTF-8 bytes: leftmost, then longest.

    Parameters
    ----------
    marks : iterable of (str, int, bool, bool)
        Text, id, whether white space on the left and on the right goes with it, and whether only that of ASCII; no text twice.
    """

    def __cinit__(self, marks):
        self.texts = sorted((m[0].encode(), *m[1:]) for m in marks)
        cdef size_t n = len(self.texts), i
        cdef int byte
        self.text_of = <const uint8_t **> PyMem_Malloc((n + 1) * sizeof(void *))
        self.length_of = <size_t *> PyMem_Malloc((n + 1) * sizeof(size_t))
        self.id_of = <int32_t *> PyMem_Malloc((n + 1) * sizeof(int32_t))
        self.strips = <uint8_t *> PyMem_Malloc(n + 1)
        if self.text_of == NULL or self.length_of == NULL or self.id_of == NULL or self.strips == NULL:
            raise MemoryError
        for i in range(n):
            data, token_id, left, right, ascii_only = <tuple> self.texts[i]
            self.text_of[i] = <const uint8_t *> <char *> (<bytes> data)
            self.length_of[i] = len(data)
            self.id_of[i] = token_id
            self.strips[i] = left | right << 1 | ascii_only << 2
        i = 0
        for byte in range(256):
            self.begin[byte] = <uint32_t> i
            while i < n and self.text_of[i][0] == byte:
                i += 1
        self.begin[256] = <uint32_t> n
        firsts = {m[0][0] for m in self.texts}
        self.only_first_byte = firsts.pop() if len(firsts) == 1 else -1

    def __dealloc__(self):
        PyMem_Free(self.text_of)
        PyMem_Free(self.length_of)
        PyMem_Free(self.id_of)
        PyMem_Free(self.strips)

    def __len__(self):
        return len(self.texts)

    cdef Py_ssize_t match(self, const uint8_t *at, const uint8_t *end) noexcept nogil:
        """Index of the longest mark that begins here, or -1: the sorted marks are narrowed down byte by byte."""
        cdef size_t low = self.begin[at[0]], high = self.begin[at[0] + 1], depth = 1
        cdef Py_ssize_t best = -1
        while low < high:
            if self.length_of[low] == depth:
                best = low
                low += 1
            if at + depth == end:
                break
            low = self.bound(low, high, depth, at[depth])
            high = self.bound(low, high, depth, at[depth] + 1)
            depth += 1
        return best

    cdef size_t bound(self, size_t low, size_t high, size_t depth, int byte) noexcept nogil:
        """The first mark in [low, high) whose byte at this depth is not less than the given one."""
        cdef size_t middle
        while low < high:
            middle = (low + high) // 2
            if self.text_of[middle][depth] < byte:
                low = middle + 1
            else:
                high = middle
        return low

    cdef const uint8_t *find(self, const uint8_t *at, const uint8_t *end, Py_ssize_t *which) noexcept nogil:
        """The first place from `at` on where a mark begins, with its index; `end` where there is none."""
        if self.begin[256] == 0:
            return end
        while at < end:
            if self.only_first_byte >= 0:
                at = <const uint8_t *> memchr(at, self.only_first_byte, end - at)
                if at == NULL:
                    return end
            if self.begin[at[0]] != self.begin[at[0] + 1]:
                which[0] = self.match(at, end)
                if which[0] >= 0:
                    return at
            at += 1
        return end

    cdef const uint8_t *widen(self, Py_ssize_t which, const uint8_t **at, const uint8_t *begin, const uint8_t *end) noexcept nogil:
        """The end of the mark found at `at[0]`, which moves to its beginning: white space that goes with it is taken in."""
        cdef const uint8_t *stop = at[0] + self.length_of[which]
        cdef uint8_t strips = self.strips[which]
        if strips & 1:
            at[0] = spaces_before(at[0], begin, strips & 4) if at[0] > begin else begin
        if strips & 2:
            stop = spaces_after(stop, end, strips & 4)
        return stop


NO_MARKS = Marks([])


cdef uint32_t decode_at(const uint8_t *p) noexcept nogil:
    if p[0] < 0x80:
        return p[0]
    if p[0] < 0xE0:
        return (p[0] & 31) << 6 | (p[1] & 63)
    if p[0] < 0xF0:
        return (p[0] & 15) << 12 | (p[1] & 63) << 6 | (p[2] & 63)
    return (p[0] & 7) << 18 | (p[1] & 63) << 12 | (p[2] & 63) << 6 | (p[3] & 63)


cdef const uint8_t *spaces_before(const uint8_t *at, const uint8_t *begin, bint ascii_only) noexcept nogil:
    """Where the white space that ends at `at` begins."""
    cdef const uint8_t *p
    while at > begin:
        p = at - 1
        while p > begin and (p[0] & 0xC0) == 0x80:
            p -= 1
        if not cyg_is_space(decode_at(p)) or (ascii_only and p[0] > 127):
            break
        at = p
    return at


cdef const uint8_t *spaces_after(const uint8_t *at, const uint8_t *end, bint ascii_only) noexcept nogil:
    while at < end and cyg_is_space(decode_at(at)) and not (ascii_only and at[0] > 127):
        at += 1
        while at < end and (at[0] & 0xC0) == 0x80:
            at += 1
    return at
