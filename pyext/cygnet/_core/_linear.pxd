"""A packed weight and its product; see pyext/_linear.pyx."""

from libc.stdint cimport int8_t, int32_t, int64_t

from cygnet._core._kernels cimport cyg_basis, cyg_kernels, cyg_weight_kind
from cygnet._core._threads cimport team

cdef extern from "memory.h":
    void *memory_take(size_t size) noexcept nogil
    void memory_give(void *p) noexcept nogil

cdef struct Linear:
    cyg_weight_kind kind
    int64_t n, k        # output and input features
    int64_t panels
    size_t panel_bytes
    char *data
    float *bias         # (n) or NULL
    int64_t column      # first column of its output in a row that several products fill

cdef struct Rows:
    # Activations as products read them: float32, and codes with scales where an integer weight reads them.
    float *x
    int64_t ldx
    int8_t *q
    float *scale
    int32_t *sum

cdef class Arena:
    """The memory of all weights of a model, taken in one piece."""
    cdef char *memory
    cdef size_t size, used
    cdef void *take(self, size_t size) except NULL

cdef class Weight:
    """One matrix or several matrices over the same input, packed, with their biases."""
    cdef Linear *parts
    cdef readonly int count
    cdef readonly int64_t n, k
    cdef readonly Arena arena
    cdef object own_bias  # keeps alive a bias that does not lie in the arena

cdef cyg_basis basis_of(const Linear *parts, int count) noexcept nogil
cdef void product_stage(const cyg_kernels *table, team *members, int thread, const Linear *parts, int count, const Rows *rows, int64_t m,
                        float alpha, int accumulate, float *y, int64_t ldy) noexcept nogil
