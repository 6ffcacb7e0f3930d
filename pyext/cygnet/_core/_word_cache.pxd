"""Declarations of csrc/word_cache.h for the extensions that remember words."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from cygnet._core._lane cimport cyg_ids


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
