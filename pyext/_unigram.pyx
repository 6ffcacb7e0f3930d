"""Unigram segmentation (Kudo 2018): the most probable way to cut a text into pieces, by Viterbi over a trie."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, malloc

from cygnet._core._segmenter cimport Scratch, Segmenter
from cygnet._core._trie cimport Trie, cyg_trie_find, cyg_trie_step, cyg_trie_unit

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
