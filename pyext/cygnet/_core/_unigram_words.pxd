from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from cygnet._core._unigram cimport UnigramSegmenter, UnigramSpace
from cygnet._core._word_cache cimport cyg_word


cdef class CarriedWords:
    cdef UnigramSegmenter segmenter
    cdef bytes sign
    cdef const uint8_t *sign_bytes
    cdef size_t sign_size
    # Half of the difference that the rounding of one addition may make between two ways, as part of their scores.
    cdef double rounding
    cdef int resolve(self, UnigramSpace space, const cyg_word *batch, size_t count, double *score) noexcept nogil
    cdef int known(self, UnigramSpace space, const cyg_word *word, double *score) noexcept nogil
    cdef int learn(self, UnigramSpace space, const cyg_word *word) noexcept nogil
    cdef int search(self, UnigramSpace space, const cyg_word *word, double *score) noexcept nogil
    cdef const uint8_t *spelled(self, UnigramSpace space, const cyg_word *word, size_t *size) noexcept nogil
