from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from cygnet._core._segmenter cimport Scratch, Segmenter
from cygnet._core._trie cimport Trie


# Best way to the text's first bytes: where its last piece starts, -1 for no way yet.
cdef struct Node:
    double score
    int32_t start
    int32_t id


cdef class UnigramSegmenter(Segmenter):
    cdef Trie trie
    cdef double *scores
    cdef double unknown_score
    cdef bint single
    cdef int find_best(self, Node *nodes, const uint8_t *text, size_t size) noexcept nogil
