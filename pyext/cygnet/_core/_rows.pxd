# Reductions over a row of logits, for the samplers.
from libc.stdint cimport int64_t


cdef int64_t largest(const float *row, int64_t n) noexcept nogil
cdef float kth_largest(const float *row, int64_t n, int64_t k, float *heap) noexcept nogil
