from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from cygnet._core._charsmap cimport Charsmap
from cygnet._core._segmenter cimport cyg_text
from cygnet._core._trie cimport Trie


# An ASCII character that no user-defined piece begins with stays as it is where no rule begins with it at all (ALONE), or where ASCII follows
# (BESIDE_ASCII: a letter that an accent may be combined with); else it has to be looked up.
cdef enum Reach:
    ANY_WAY
    BESIDE_ASCII
    ALONE


cdef class Rewriter:
    cdef Charsmap charsmap
    cdef Trie kept
    cdef bint dummy, squeeze, escape, suffix, word_by_word
    cdef bytes sign
    cdef const uint8_t *space  # what a space becomes
    cdef size_t space_size
    cdef uint8_t space_reach
    cdef uint8_t[256] reach  # of each byte, a Reach; spaces are looked at apart from the rest
    cdef Reach reach_of(self, uint8_t c)
    cdef size_t prefix(self, const uint8_t *text, size_t size, const uint8_t **new, size_t *new_size) noexcept nogil
    cdef int put(self, cyg_text *out, const uint8_t *data, size_t size, size_t start, size_t end) noexcept nogil
    cdef int rewrite(self, cyg_text *out, const uint8_t *text, size_t size) noexcept nogil
    cdef int rewrite_words(self, cyg_text *out, const uint8_t *text, size_t size) noexcept nogil
    cdef size_t trim(self, cyg_text *out, size_t begin, size_t source_end) noexcept nogil
