"""Whole texts through a lane: added tokens cut out, on any number of threads, ids kept as 32-bit integers until a list is wanted."""

from cpython.list cimport PyList_New
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from cygnet._core._lane cimport Lane, Marks, Workspace, cyg_ids_push

from _thread import allocate_lock, start_new_thread

from cygnet._core._lane import NO_MARKS

# By address: Cython would count a reference more for every object it holds on the way.
cdef extern from "Python.h":
    ctypedef struct PyListObject:
        PyObject **ob_item
    void Py_INCREF(PyObject *object)
    void PyList_SET_ITEM(object list, Py_ssize_t i, PyObject *item)
    PyObject *PyLong_FromLong(long value)

cdef extern from "cyg_claims.h" nogil:
    ctypedef struct cyg_claims:
        pass
    void cyg_claims_init(cyg_claims *claims)
    size_t cyg_claim(cyg_claims *claims, size_t count)

cdef extern from "cyg_table.h" nogil:
    void CYG_PREFETCH(const void *address)

cdef enum:
    # Bytes of text that are not worth another thread, and that one claim of a thread takes at least.
    FEW_BYTES = 50_000
    CLAIMED_BYTES = 8192
    # How far before its use an integer is asked for: processors wait for what is written, as a reference count is, more than for what is read.
    AHEAD = 24


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
            if i + AHEAD < size and ids[i + AHEAD] < known:
                CYG_PREFETCH(numbers[ids[i + AHEAD]])
            if ids[i] < known:
                number = numbers[ids[i]]
                Py_INCREF(number)
            else:
                number = PyLong_FromLong(ids[i])
                if number == NULL:
                    raise MemoryError
            PyList_SET_ITEM(out, i, number)
        return out


cdef struct text_part:
    const uint8_t *data
    size_t length
    int32_t *ids  # its own memory, until an IdArray takes it
    size_t count
    int status


cdef struct batch:
    text_part *parts
    size_t count, claimed  # texts, and how many of them one claim takes
    cyg_claims claims


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
        return self.ids_of_many([text], parse_special, 1)[0]

    def ids_of_many(self, list texts, bint parse_special, int threads):
        """ids() of every text, on several threads."""
        cdef size_t n = len(texts), i, total = 0
        cdef Py_ssize_t length = 0
        cdef batch work
        work.parts = <text_part *> calloc(n + 1, sizeof(text_part))
        if work.parts == NULL:
            raise MemoryError
        try:
            for i in range(n):
                work.parts[i].data = <const uint8_t *> PyUnicode_AsUTF8AndSize(texts[i], &length)
                work.parts[i].length = length
                total += length
            work.count = n
            work.claimed = min(max(CLAIMED_BYTES * n // (total + 1), 1), n)
            cyg_claims_init(&work.claims)
            self.run(<size_t> &work, self.passes[parse_special], threads if total > FEW_BYTES else 1)
            return [self.taken(&work.parts[i]) for i in range(n)]
        finally:
            for i in range(n):
                free(work.parts[i].ids)
            free(work.parts)

    cdef run(self, size_t work, list marks, int threads):
        """The batch at that address, the calling thread among those that work on it; it is let go of when none does any more, come what may."""
        helpers = [allocate_lock() for _ in range(threads - 1)]
        interruption = None
        try:
            for working in helpers:
                working.acquire()
                try:
                    # Not threading.Thread, whose start() waits until the thread runs.
                    start_new_thread(self.help, (work, marks, working))
                except RuntimeError:  # the system has no more threads: fewer do it
                    working.release()
            self.share(work, marks)
        finally:
            for working in helpers:
                while True:
                    try:
                        working.acquire()
                        break
                    except KeyboardInterrupt as error:
                        interruption = error
        if interruption is not None:
            raise interruption

    def help(self, size_t address, list marks, working):
        try:
            self.share(address, marks)
        finally:
            working.release()

    def share(self, size_t address, list marks):
        """What one thread can claim of a batch."""
        cdef batch *work = <batch *> address
        cdef Workspace space = self.borrow()
        cdef Marks first = marks[0]
        cdef Marks second = marks[1]
        cdef size_t begin, i
        with nogil:
            begin = cyg_claim(&work.claims, work.claimed)
            while begin < work.count:
                for i in range(begin, min(begin + work.claimed, work.count)):
                    self.run_one(space, first, second, &work.parts[i])
                begin = cyg_claim(&work.claims, work.claimed)
        self.spaces.append(space)

    cdef Workspace borrow(self):
        try:
            return self.spaces.pop()
        except IndexError:
            return self.lane.workspace()

    cdef IdArray taken(self, text_part *part):
        """The ids of a text; None where the lane left it."""
        cdef IdArray out
        if part.status < 0:
            raise MemoryError
        if part.status:
            return None
        out = IdArray.__new__(IdArray)
        out.numbers = self.numbers
        out.size = part.count
        out.data = part.ids
        part.ids = NULL
        return out

    cdef void run_one(self, Workspace space, Marks first, Marks second, text_part *part) noexcept nogil:
        space.ids.size = 0
        part.status = self.cut(space, first, second, part.data, part.data + part.length, True)
        if part.status:
            return
        part.count = space.ids.size
        part.ids = <int32_t *> malloc(part.count * sizeof(int32_t) + 1)
        if part.ids == NULL:
            part.status = -1
        elif part.count:
            memcpy(part.ids, space.ids.data, part.count * sizeof(int32_t))

    cdef int cut(self, Workspace space, Marks marks, Marks inner, const uint8_t *text, const uint8_t *end, bint first) noexcept nogil:
        """Ids of a stretch: what the marks leave goes to the inner marks, and what these leave (inner is marks) to the lane."""
        cdef const uint8_t *begin = text
        cdef const uint8_t *search = text
        cdef const uint8_t *at
        cdef const uint8_t *stop
        cdef Py_ssize_t which
        cdef int status
        while True:
            which = -1
            at = stop = marks.find(search, end, &which)
            if which >= 0:
                search = at + marks.length_of[which]
                stop = marks.widen(which, &at, begin, end)
                # White space that a mark has taken in is looked through for others, except by the rules of GGUF files.
                if marks.strips[which] & 4:
                    search = stop
            if at > begin:
                if inner is marks:
                    status = self.lane.encode(space, begin, at - begin, first and begin == text)
                else:
                    status = self.cut(space, inner, inner, begin, at, first and begin == text)
                if status:
                    return status
            if which < 0:
                return 0
            if at < stop and cyg_ids_push(&space.ids, marks.id_of[which]):
                return -1
            begin = stop
