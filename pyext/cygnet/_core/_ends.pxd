"""What a pass is asked for, and its two ends; see pyext/_ends.pyx."""

from libc.stdint cimport int32_t, int64_t

from cygnet._core._pass cimport Pass
from cygnet._core._stack cimport StackLayout

cdef struct Work:
    Pass p
    const StackLayout *stack
    const int32_t *ids       # (T) tokens, NULL: `embedded` holds the embeddings
    const float *embedded    # (T, D)
    const int32_t *rows_of   # (T) row of the position table, or NULL
    const int32_t *types     # (T) or NULL
    float *project_input     # (T, E)
    float *hidden            # (T, D) output, or NULL
    const int64_t *head_rows # (R) rows whose head outputs are wanted
    int64_t head_count
    float *head_a
    float *head_b
    float *logits            # (R, V) output
    int beyond               # a key or value did not fit float16

cdef void embed(Work *work, int thread) noexcept nogil
cdef void write_hidden(Work *work, int thread) noexcept nogil
cdef void head(Work *work, int thread) noexcept nogil
