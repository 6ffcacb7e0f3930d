"""Unigram segmentation (Kudo 2018): the most probable way to cut a text into pieces, by Viterbi over a trie."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t
from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from cygnet._core._lane cimport cyg_ids_push
from cygnet._core._segmenter cimport Scratch, Segmenter, cyg_text_free
from cygnet._core._trie cimport Trie, cyg_trie_find, cyg_trie_step, cyg_trie_unit
from cygnet._core._word_cache cimport cyg_words_free, cyg_words_init

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_length(uint8_t first)


cdef class UnigramSpace(Scratch):
    """Adds the words seen before, the word at hand with its sign, and a second buffer for the steps of a normalizer."""

    def __cinit__(self):
        memset(&self.words, 0, sizeof(self.words))
        if cyg_words_init(&self.words):
            raise MemoryError

    def __dealloc__(self):
        cyg_words_free(&self.words)
        cyg_text_free(&self.word)
        cyg_text_free(&self.spare)


cdef inline void offer(Node *nodes, size_t *reached, size_t end, double score, size_t start, int32_t id) noexcept nogil:
    """Takes a way to `end` if it is the first or better; nodes after *reached are not yet filled."""
    cdef size_t i
    if end > reached[0]:
        for i in range(reached[0] + 1, end + 1):
            nodes[i].start = -1
        reached[0] = end
    if nodes[end].start < 0:
        nodes[end].second = -INFINITY
    elif score <= nodes[end].score:
        nodes[end].second = max(nodes[end].second, score)
        return
    else:
        nodes[end].second = nodes[end].score
    nodes[end].score = score
    nodes[end].start = <int32_t> start
    nodes[end].id = id


cdef class UnigramSegmenter(Segmenter):
    """Viterbi over the pieces.

    Parameters
    ----------
    pieces : Trie
        Ids of those that may be matched.
    scores : (n,) float64 buffer
        Score of each id.
    unknown_score : float
        Score of a character that no piece covers.
    unknown, byte_ids
        As in Segmenter.
    single : bool
        Keep path scores in single precision, as SentencePiece does; ties then break as they do there.
    words_apart : bool
        No piece reaches from one word into the next: each has a space sign at most in front, and the sign alone is one.
    """

    def __init__(
        self, Trie pieces, const double[::1] scores, double unknown_score, unknown, byte_ids=None, *, bint single=False, bint words_apart=False
    ):
        cdef Py_ssize_t i
        Segmenter.__init__(self, unknown, byte_ids)
        self.trie = pieces
        self.single = single
        self.words_apart = words_apart
        self.unknown_score = unknown_score
        self.largest = fabs(unknown_score)
        self.scores = <double *> malloc((len(scores) + 1) * sizeof(double))
        if self.scores == NULL:
            raise MemoryError
        for i in range(len(scores)):
            self.scores[i] = scores[i]
            self.largest = max(self.largest, fabs(scores[i]))

    def __dealloc__(self):
        free(self.scores)

    cdef Node *nodes_for(self, Scratch space, size_t size) noexcept nogil:
        """Memory for find_best() and emit_best() of so many bytes; NULL out of memory."""
        return <Node *> space.need((size + 1) * (sizeof(Node) + sizeof(int32_t))) if size <= 0x7FFFFFF0 else NULL

    cdef int find_best(self, Node *nodes, const uint8_t *text, size_t size, double score, bint single) noexcept nogil:
        """Fills nodes[0..size], from the score at the beginning on; 1 where that needs an unknown piece and there is none."""
        cdef const cyg_trie_unit *units = self.trie.trie.units
        cdef const double *scores = self.scores
        cdef size_t start = 0, end, char_end, reached = 0
        cdef int32_t node, id
        cdef double here, candidate
        cdef bint covered
        nodes[0].score = score
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
        cdef int failed
        if size == 0:
            return 0
        nodes = self.nodes_for(space, size)
        if nodes == NULL:
            return -1
        failed = self.find_best(nodes, text, size, 0, self.single)
        return failed if failed else self.emit_best(space, nodes, text, size)

    cdef int emit_best(self, Scratch space, Node *nodes, const uint8_t *text, size_t size) noexcept nogil:
        """Appends the pieces of the best way to the end."""
        cdef size_t count = 0, at, start, end
        cdef int32_t *starts
        cdef int32_t id
        cdef int failed = 0
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

    cdef bint passes_unknown(self, const Node *nodes, size_t size) noexcept nogil:
        """Whether an unknown piece is on the best way."""
        while size:
            if nodes[size].id == self.unknown:
                return True
            size = nodes[size].start
        return False

    cdef int push_way(self, Scratch space, const Node *nodes, const uint8_t *text, size_t size) noexcept nogil:
        """Appends the steps of the best way to the ids: each a piece, or -1 for a character that none covers. Their number, or -1 out of memory."""
        cdef size_t at = size, start, i
        cdef int32_t id
        cdef int count = 0
        cdef int32_t *steps
        while at:
            start = nodes[at].start
            id = nodes[at].id
            if id == self.unknown and cyg_trie_find(&self.trie.trie, <const char *> text + start, at - start) < 0:
                id = -1
            if cyg_ids_push(&space.ids, id):
                return -1
            count += 1
            at = start
        steps = space.ids.data + space.ids.size - count
        for i in range(<size_t> count // 2):
            steps[i], steps[count - 1 - i] = steps[count - 1 - i], steps[i]
        return count

    cdef double margin(self, const Node *nodes, size_t size) noexcept nogil:
        """By how much the best way wins, at the place where it is closest."""
        cdef double least = INFINITY
        while size:
            least = min(least, nodes[size].score - nodes[size].second)
            size = nodes[size].start
        return least
