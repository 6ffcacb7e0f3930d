"""The compiled way from text to ids: what a model's lane must do, and the runner that cuts out added tokens and drives it.

A lane takes one stretch of UTF-8 without added tokens through normalizer, pre-tokenizer and model in one call without the GIL.
Scratch memory and caches live in a Workspace; each running call owns one, so no lane needs a lock.
"""

from cpython.list cimport PyList_New
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp, memcpy

from cygnet._core._unicode cimport cyg_is_space

# By address: Cython would count a reference more for every object it holds on the way.
cdef extern from "Python.h":
    ctypedef struct PyListObject:
        PyObject **ob_item
    void Py_INCREF(PyObject *object)
    void PyList_SET_ITEM(object list, Py_ssize_t i, PyObject *item)
    PyObject *PyLong_FromLong(long value)

from concurrent.futures import ThreadPoolExecutor


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


cdef class IdArray:
    """Token ids as 32-bit integers; a list of Python ints is made only when tolist() asks for it."""

    cdef int32_t *data
    cdef Py_ssize_t size
    cdef list numbers

    def __dealloc__(self):
        free(self.data)

    def __len__(self):
        return self.size

    def tolist(self):
        """The ids as a list of int."""
        cdef Py_ssize_t i, size = self.size
        cdef list out = PyList_New(size)
        cdef const int32_t *ids = self.data
        cdef Py_ssize_t known = len(self.numbers)
        cdef PyObject **numbers = (<PyListObject *> self.numbers).ob_item
        cdef PyObject *number
        for i in range(size):
            if ids[i] < known:
                number = numbers[ids[i]]
                Py_INCREF(number)
            else:
                number = PyLong_FromLong(ids[i])
                if number == NULL:
                    raise MemoryError
            PyList_SET_ITEM(out, i, number)
        return out


cdef class Marks:
    """Strings that are cut out of the text, by their UTF-8 bytes: leftmost, then longest.

    Parameters
    ----------
    marks : iterable of (str, int, bool, bool)
        Text, id, whether white space on the left and on the right goes with it, and whether only that of ASCII; no text twice.
    """

    cdef list texts
    cdef const uint8_t **text_of
    cdef size_t *length_of
    cdef int32_t *id_of
    cdef uint8_t *strips
    cdef uint32_t[257] begin
    cdef int only_first_byte

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


cdef struct text_part:
    const uint8_t *data
    size_t length
    size_t end   # of its ids, in the ids of the whole group
    int status


cdef class Runner:
    """Drives a lane over whole texts.

    Parameters
    ----------
    lane : Lane
    passes : list of lists of Marks
        Added tokens that are cut out, first by the first Marks, then by the next between them; one list for parse_special False, one for True.
        Empty: none.
    vocab_size : int
        Ids below this are quickest to list.
    """

    cdef Lane lane
    cdef list passes
    cdef list spaces
    cdef list numbers

    def __init__(self, Lane lane, list passes, size_t vocab_size):
        self.lane = lane
        self.passes = passes or [[NO_MARKS, NO_MARKS]] * 2
        self.spaces = []
        # One Python int for each id, shared by all results: an id in a list costs a reference count, not an object.
        self.numbers = list(range(vocab_size))

    def ids(self, str text, bint parse_special=True):
        """Ids of a text, or None where it must go stage by stage.

        Raises
        ------
        UnicodeEncodeError
            Where the text holds a lone surrogate.
        """
        cdef text_part part
        cdef Py_ssize_t length = 0
        cdef Workspace space = self.borrow()
        part.data = <const uint8_t *> PyUnicode_AsUTF8AndSize(text, &length)
        part.length = length
        self.run_group(space, self.passes[parse_special], &part, 1)
        try:
            return self.taken(space, &part, 0)
        finally:
            self.spaces.append(space)

    def ids_of_many(self, list texts, bint parse_special, int threads):
        """ids() of every text, on several threads."""
        cdef Py_ssize_t n = len(texts), i, length = 0, total = 0
        cdef text_part *parts = <text_part *> malloc((n + 1) * sizeof(text_part))
        if parts == NULL:
            raise MemoryError
        try:
            for i in range(n):
                parts[i].data = <const uint8_t *> PyUnicode_AsUTF8AndSize(texts[i], &length)
                parts[i].length = length
                total += length
            groups = self.groups(parts, n, total, threads if total > 50_000 else 1)
            return self.results(groups, parts, parse_special)
        finally:
            free(parts)

    cdef list groups(self, text_part *parts, Py_ssize_t n, Py_ssize_t total, int count):
        """(first, last + 1) of groups of neighbouring texts with about the same number of bytes."""
        cdef Py_ssize_t i, begin = 0, size = 0
        cdef list out = []
        for i in range(n):
            size += parts[i].length
            if size * count >= total * (len(out) + 1) and len(out) < count - 1:
                out.append((begin, i + 1))
                begin = i + 1
        out.append((begin, n))
        return out

    cdef list results(self, list groups, text_part *parts, bint parse_special):
        cdef Py_ssize_t i, begin, end
        cdef list spaces = [self.borrow() for _ in groups]
        cdef list marks = self.passes[parse_special]
        cdef size_t address = <size_t> parts
        jobs = [(space, marks, address, begin, end) for space, (begin, end) in zip(spaces, groups)]
        if len(jobs) == 1:
            self.job(*jobs[0])
        else:
            with ThreadPoolExecutor(len(jobs)) as pool:
                list(pool.map(lambda job: self.job(*job), jobs))
        out = []
        for space, (begin, end) in zip(spaces, groups):
            for i in range(begin, end):
                out.append(self.taken(space, &parts[i], parts[i - 1].end if i > begin else 0))
        self.spaces += spaces
        return out

    def job(self, Workspace space, list marks, size_t address, Py_ssize_t begin, Py_ssize_t end):
        """One thread's share of ids_of_many()."""
        self.run_group(space, marks, <text_part *> address + begin, end - begin)

    cdef Workspace borrow(self):
        try:
            return self.spaces.pop()
        except IndexError:
            return self.lane.workspace()

    cdef IdArray taken(self, Workspace space, text_part *part, size_t begin):
        """The ids of one text of a group, copied out of the workspace; None where the lane left it."""
        cdef IdArray out
        if part.status < 0:
            raise MemoryError
        if part.status:
            return None
        out = IdArray.__new__(IdArray)
        out.numbers = self.numbers
        out.size = part.end - begin
        out.data = <int32_t *> malloc(out.size * sizeof(int32_t) + 1)
        if out.data == NULL:
            raise MemoryError
        if out.size:
            memcpy(out.data, space.ids.data + begin, out.size * sizeof(int32_t))
        return out

    cdef int run_group(self, Workspace space, list passes, text_part *parts, Py_ssize_t count) except -1:
        cdef Py_ssize_t i
        cdef Marks first = passes[0]
        cdef Marks second = passes[1]
        cdef size_t before
        with nogil:
            space.ids.size = 0
            for i in range(count):
                before = space.ids.size
                parts[i].status = self.cut(space, first, second, parts[i].data, parts[i].data + parts[i].length, True)
                if parts[i].status:
                    space.ids.size = before
                parts[i].end = space.ids.size
        return 0

    cdef int cut(self, Workspace space, Marks marks, Marks inner, const uint8_t *text, const uint8_t *end, bint first) noexcept nogil:
        """Ids of a stretch: what the marks leave goes to the inner marks, and what these leave (inner is marks) to the lane."""
        cdef const uint8_t *begin = text
        cdef const uint8_t *at
        cdef const uint8_t *stop
        cdef Py_ssize_t which = -1
        cdef int status
        while begin < end:
            at = stop = marks.find(begin, end, &which)
            if at != end:
                stop = at + marks.length_of[which]
                if marks.strips[which] & 1:
                    at = spaces_before(at, begin, marks.strips[which] & 4)
                if marks.strips[which] & 2:
                    stop = spaces_after(stop, end, marks.strips[which] & 4)
            if at > begin:
                if inner is marks:
                    status = self.lane.encode(space, begin, at - begin, first and begin == text)
                else:
                    status = self.cut(space, inner, inner, begin, at, first and begin == text)
                if status:
                    return status
            if at == end:
                break
            if cyg_ids_push(&space.ids, marks.id_of[which]):
                return -1
            begin = stop
        return 0
