from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from cygnet._core._lane cimport cyg_ids
from cygnet._core._segmenter cimport Scratch, Segmenter, cyg_text
from cygnet._core._trie cimport Trie


cdef extern from "word_cache.h" nogil:
    enum:
        CYG_WORD_SLACK
        CYG_LONG_BYTES
    ctypedef struct cyg_words:
        void *shorts
    ctypedef struct cyg_word:
        const uint8_t *bytes
        size_t size
        bint mark
    int cyg_words_init(cyg_words *words)
    void cyg_words_free(cyg_words *words)
    void cyg_word_locate(const cyg_words *words, cyg_word *word)
    int cyg_word_recall(const cyg_words *words, const cyg_word *word, cyg_ids *ids)
    void cyg_word_keep(cyg_words *words, const cyg_word *word, const int32_t *ids, size_t count)


cdef class UnigramSpace(Scratch):
    cdef cyg_words words
    cdef cyg_text word


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
    cdef double largest
    cdef readonly bint words_apart
    cdef Node *nodes_for(self, Scratch space, size_t size) noexcept nogil
    cdef int find_best(self, Node *nodes, const uint8_t *text, size_t size, double score, bint single) noexcept nogil
    cdef int emit_best(self, Scratch space, Node *nodes, const uint8_t *text, size_t size) noexcept nogil
    cdef double margin(self, const Node *nodes, const uint8_t *text, size_t size) noexcept nogil
