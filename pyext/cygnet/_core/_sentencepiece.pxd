from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from cygnet._core._charsmap cimport Charsmap
from cygnet._core._segmenter cimport cyg_text
from cygnet._core._trie cimport Trie


cdef class Rewriter:
    cdef Charsmap charsmap
    cdef Trie kept
    cdef bint dummy, squeeze, escape, suffix, word_by_word, bare_space
    cdef bint[128] plain
    cdef size_t prefix(self, const uint8_t *text, size_t size, const uint8_t **new, size_t *new_size) noexcept nogil
    cdef int put(self, cyg_text *out, const uint8_t *data, size_t size, size_t start, size_t end) noexcept nogil
    cdef int rewrite(self, cyg_text *out, const uint8_t *text, size_t size) noexcept nogil
    cdef int rewrite_words(self, cyg_text *out, const uint8_t *text, size_t size) noexcept nogil
    cdef size_t trim(self, cyg_text *out, size_t begin, size_t source_end) noexcept nogil
