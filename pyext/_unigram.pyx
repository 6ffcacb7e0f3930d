"""Unigram segmentation (Kudo 2018): the most probable way to cut a text into pieces, by Viterbi over a trie."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t
from libc.math cimport copysign, fabs, isfinite, pow
from libc.stdlib cimport atoi, free, malloc

from cygnet._core._segmenter cimport Scratch, Segmenter
from cygnet._core._trie cimport Trie, cyg_trie_find, cyg_trie_step, cyg_trie_unit

cdef extern from "Python.h":
    char *PyOS_double_to_string(double value, char format, int precision, int flags, int *kind) except NULL
    void PyMem_Free(void *memory)

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_length(uint8_t first)


cdef inline void offer(Node *nodes, size_t *reached, size_t end, double score, size_t start, int32_t id) noexcept nogil:
    """Takes a way to `end` if it is the first or better; nodes after *reached are not yet filled."""
    cdef size_t i
    if end <= reached[0]:
        if nodes[end].start >= 0 and score <= nodes[end].score:
            return
    else:
        for i in range(reached[0] + 1, end):
            nodes[i].start = -1
        reached[0] = end
    nodes[end].score = score
    nodes[end].start = <int32_t> start
    nodes[end].id = id


cdef class UnigramSegmenter(Segmenter):
    """Viterbi over the pieces.

    Parameters
    ----------
    pieces : sequence of str
        Those that may be matched.
    ids : sequence of int
        Id of each.
    scores : sequence of float
        Score of each id, by id.
    unknown_score : float
        Score of a character that no piece covers.
    single : bool
        Keep path scores in single precision, as SentencePiece does; ties then break as they do there.
    unknown, byte_ids
        As in Segmenter.
    """

    def __init__(self, pieces, ids, scores, double unknown_score, bint single, unknown, byte_ids=None):
        cdef Py_ssize_t i
        Segmenter.__init__(self, unknown, byte_ids)
        self.trie = Trie(pieces, ids)
        scores = list(scores)
        self.scores = <double *> malloc((len(scores) + 1) * sizeof(double))
        if self.scores == NULL:
            raise MemoryError
        for i in range(len(scores)):
            self.scores[i] = scores[i]
        self.unknown_score = unknown_score
        self.single = single

    def __dealloc__(self):
        free(self.scores)

    cdef int find_best(self, Node *nodes, const uint8_t *text, size_t size) noexcept nogil:
        """Fills nodes[0..size]; 1 where that needs an unknown piece and there is none."""
        cdef const cyg_trie_unit *units = self.trie.trie.units
        cdef const double *scores = self.scores
        cdef size_t start = 0, end, char_end, reached = 0
        cdef int32_t node, id
        cdef double here, candidate
        cdef bint covered, single = self.single
        nodes[0].score = 0
        nodes[0].start = 0
        while start < size:
            here = nodes[start].score
            char_end = start + cyg_utf8_length(text[start])
            if char_end > size:
                char_end = size
            covered = False
            node = 0
            end = start
            while end < size:
                node = cyg_trie_step(units, node, text[end])
                if node < 0:
                    break
                end += 1
                id = units[node].value
                if id < 0:
                    continue
                candidate = here + scores[id]
                if single:
                    candidate = <float> candidate
                offer(nodes, &reached, end, candidate, start, id)
                covered = covered or end == char_end
            if not covered:
                if self.unknown < 0:
                    return 1
                candidate = here + self.unknown_score
                if single:
                    candidate = <float> candidate
                offer(nodes, &reached, char_end, candidate, start, self.unknown)
            start = char_end
        return 0

    cdef int segment(self, Scratch space, const uint8_t *text, size_t size) noexcept nogil:
        cdef Node *nodes
        cdef int32_t *starts
        cdef size_t count = 0, at, start, end
        cdef int32_t id
        cdef int failed
        if size == 0:
            return 0
        if size > 0x7FFFFFF0:
            return -1
        nodes = <Node *> space.need((size + 1) * (sizeof(Node) + sizeof(int32_t)))
        if nodes == NULL:
            return -1
        failed = self.find_best(nodes, text, size)
        if failed:
            return failed
        starts = <int32_t *> (nodes + size + 1)
        at = size
        while at > 0:
            at = nodes[at].start
            starts[count] = <int32_t> at
            count += 1
        while count and not failed:
            count -= 1
            start = starts[count]
            end = starts[count - 1] if count else size
            id = nodes[end].id
            if id != self.unknown:
                failed = space.emit(id, start, end)
                continue
            # Unknown pieces in a row are one; together they may spell a piece that lost to them.
            while count and nodes[starts[count - 2] if count > 1 else size].id == self.unknown:
                count -= 1
                end = starts[count - 1] if count else size
            id = cyg_trie_find(&self.trie.trie, <const char *> text + start, end - start)
            failed = space.emit(id, start, end) if id >= 0 else self.emit_unknown(space, text, start, end)
        return failed


cdef double read_score(double number) except? -1:
    """A score as tokenizer.json's own library reads it: the digits as an integer, rounded, over a power of ten, rounded again.

    Pieces of equal score along two ways through a text are common, and the last bit decides which way is taken.
    """
    cdef char *spelled = PyOS_double_to_string(fabs(number), c"r", 0, 0, NULL)
    cdef char *at = spelled
    cdef long long digits = 0  # 17 at most
    cdef int power = 0, zeros = 0
    cdef bint fraction = False
    while at[0] != 0 and at[0] != c"e":
        if at[0] == c".":
            fraction = True
        elif fraction and at[0] == c"0":
            zeros += 1
        else:
            for _ in range(zeros if fraction else 0):
                digits *= 10
                power -= 1
            zeros = 0
            digits = 10 * digits + (at[0] - c"0")
            power -= fraction
        at += 1
    if at[0] == c"e":
        power += atoi(at + 1)
    PyMem_Free(spelled)
    return copysign(<double> digits / pow(10.0, -power) if power < 0 else <double> digits * pow(10.0, power), number)


def read_pieces(list rows):
    """(piece, score) of every row of a tokenizer.json's vocabulary, and the index of the first row that is none; -1 for no such row."""
    cdef Py_ssize_t i
    cdef list out = []
    for i in range(len(rows)):
        row = rows[i]
        if type(row) is not list or len(<list> row) != 2 or type((<list> row)[0]) is not str or type((<list> row)[1]) not in (int, float):
            return out, i
        number = float((<list> row)[1])
        if not isfinite(number):
            return out, i
        out.append(((<list> row)[0], read_score(number)))
    return out, -1
