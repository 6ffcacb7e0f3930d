from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from cygnet._core._lane cimport Lane, Workspace, cyg_ids
from cygnet._core._segmenter cimport cyg_text
from cygnet._core._trie cimport Trie


cdef class WordPieces:
    cdef Trie tokens
    cdef int32_t continuation
    cdef int32_t unknown
    cdef size_t max_chars
    cdef int match(self, cyg_ids *ids, const uint8_t *word, size_t size, size_t *ends) noexcept nogil


cdef class WordSpace(Workspace):
    cdef uint8_t *word
    cdef size_t room
    cdef cyg_text text
    cdef cyg_text spare
