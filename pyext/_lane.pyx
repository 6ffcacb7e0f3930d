"""The compiled way from text to ids: what a model's lane must do, and the runner that cuts out added tokens and drives it.

A lane takes one stretch of UTF-8 without added tokens through normalizer, pre-tokenizer and model in one call without the GIL.
Scratch memory and caches live in a Workspace; each running call owns one, so no lane needs a lock.
"""

from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcmp


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
    """Strings that are cut out of the text, by their UTF-8 bytes: leftmost, then longest."""

    cdef list texts
    cdef dict by_first
    cdef const uint8_t **text_of
    cdef size_t *length_of
    cdef int32_t *id_of
    cdef uint32_t[257] begin
    cdef int only_first_byte

    def __cinit__(self, marks):
        """marks: (str, id) pairs, no string twice."""
        self.texts = sorted([(t.encode(), i) for t, i in marks], key=lambda m: (m[0][0], -len(m[0])))
        cdef size_t n = len(self.texts), i
        cdef int byte
        self.text_of = <const uint8_t **> PyMem_Malloc((n + 1) * sizeof(void *))
        self.length_of = <size_t *> PyMem_Malloc((n + 1) * sizeof(size_t))
        self.id_of = <int32_t *> PyMem_Malloc((n + 1) * sizeof(int32_t))
        if self.text_of == NULL or self.length_of == NULL or self.id_of == NULL:
            raise MemoryError
        for i in range(n):
            data = (<tuple> self.texts[i])[0]
            self.text_of[i] = <const uint8_t *> <char *> (<bytes> data)
            self.length_of[i] = len(data)
            self.id_of[i] = (<tuple> self.texts[i])[1]
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

    cdef Py_ssize_t match(self, const uint8_t *at, const uint8_t *end) noexcept nogil:
        """Index of the longest mark that begins here, or -1."""
        cdef uint32_t i
        for i in range(self.begin[at[0]], self.begin[at[0] + 1]):
            if self.length_of[i] <= <size_t> (end - at) and memcmp(at, self.text_of[i], self.length_of[i]) == 0:
                return i
        return -1

    cdef const uint8_t *find(self, const uint8_t *at, const uint8_t *end, Py_ssize_t *which) noexcept nogil:
        """The first place from `at` on where a mark begins, with its index; `end` where there is none."""
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


cdef class Runner:
    """Drives a lane over whole texts.

    Parameters
    ----------
    lane : Lane
    marks : iterable of (str, int)
        Added tokens that match by plain comparison with the original text.
    vocab_size : int
        One more than the largest id.
    """

    cdef Lane lane
    cdef Marks marks
    cdef list spaces
    cdef list numbers

    def __init__(self, Lane lane, marks, size_t vocab_size):
        self.lane = lane
        self.marks = Marks(marks)
        self.spaces = []
        # One Python int for each id, shared by all results: an id in a list costs a reference count, not an object.
        self.numbers = list(range(vocab_size))

    def ids(self, str text):
        """Ids of a text that holds no lone surrogate; None where the lane leaves the text to the stages.

        Raises
        ------
        UnicodeEncodeError
            Where it holds one.
        """
        cdef Py_ssize_t length = 0
        cdef const char *data = PyUnicode_AsUTF8AndSize(text, &length)
        cdef Workspace space = self.borrow()
        cdef int failed
        with nogil:
            failed = self.run(space, <const uint8_t *> data, length)
        try:
            if failed < 0:
                raise MemoryError
            return None if failed else self.as_list(space)
        finally:
            self.spaces.append(space)

    cdef Workspace borrow(self):
        try:
            return self.spaces.pop()
        except IndexError:
            return self.lane.workspace()

    cdef int run(self, Workspace space, const uint8_t *text, size_t length) noexcept nogil:
        cdef const uint8_t *end = text + length
        cdef const uint8_t *begin = text
        cdef const uint8_t *at
        cdef Py_ssize_t which = -1
        cdef int failed
        space.ids.size = 0
        while begin < end:
            at = self.marks.find(begin, end, &which)
            if at > begin:
                failed = self.lane.encode(space, begin, at - begin, begin == text)
                if failed:
                    return failed
            if at == end:
                break
            if cyg_ids_push(&space.ids, self.marks.id_of[which]):
                return -1
            begin = at + self.marks.length_of[which]
        return 0

    cdef list as_list(self, Workspace space):
        cdef Py_ssize_t n = space.ids.size, i
        cdef list out = PyList_New(n)
        cdef list numbers = self.numbers
        cdef object number
        for i in range(n):
            number = numbers[space.ids.data[i]]
            Py_INCREF(number)
            PyList_SET_ITEM(out, i, number)
        return out
