from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from cygnet._core._segmenter cimport Scratch, Segmenter, cyg_text
from cygnet._core._trie cimport Trie
from cygnet._core._word_cache cimport cyg_words


cdef class UnigramSpace(Scratch):
    cdef cyg_words words
    cdef cyg_text word
    cdef cyg_text spare


# Best way to the text's first bytes: where its last piece starts, -1 for no way yet; and the score of the best other last step.
cdef struct Node:
    double score
    double second
    int32_t start
    int32_t id


cdef class UnigramSegmenter(Segmenter):
    cdef Trie trie
    cdef double *scores
    cdef double unknown_score
    cdef bint single
    cdef double largest
    cdef readonly bint words_apart
    cdef Node *nodes_for(self, Scratch space, size_t size) noexcept nogil
    cdef int find_best(self, Node *nodes, const uint8_t *text, size_t size, double score, bint single) noexcept nogil
    cdef int emit_best(self, Scratch space, Node *nodes, const uint8_t *text, size_t size) noexcept nogil
    cdef bint passes_unknown(self, const Node *nodes, size_t size) noexcept nogil
    cdef int push_way(self, Scratch space, const Node *nodes, const uint8_t *text, size_t size) noexcept nogil
    cdef double margin(self, const Node *nodes, size_t size) noexcept nogil
