"""An attention sublayer; see pyext/_attention_sublayer.pyx."""

from libc.stdint cimport int32_t, int64_t

from cygnet._core._linear cimport Linear, Rows
from cygnet._core._pass cimport Norm, Pass, Stage

cdef struct Disentangled:
    # Positions as packed (2 * span, D) matrices, one a head; NULL where that term is absent.
    const Linear *position_key    # content-to-position: every query with these
    const Linear *position_query  # position-to-content: every key with these
    int64_t rows                  # 2 * span
    const int32_t *row_of         # by distance (query - key), pointing at 0: the row of that relative position

cdef struct Attention:
    int heads, kv_heads, head_dim
    float scale, softcap
    float clip               # 0: none
    int causal
    int64_t window           # 0: none
    int rope                 # which rope table, -1: none
    int bias                 # which score bias, -1: none
    int qk_norm              # 0: none, 1: each head, 2: the whole vector
    bint qk_norm_last        # behind the rotation
    int64_t qk_norm_stride   # elements between the norm weights of two heads (0: shared)
    Norm query_norm, key_norm
    const Disentangled *disentangled
    const Linear *qkv        # query alone in cross-attention
    int qkv_parts
    int64_t qkv_width        # columns that these fill
    const Linear *output
    int64_t kv_offset        # elements from the base of a block to this layer
    bint cross

cdef void attention_in(Pass *p, int thread, const Attention *a, const Rows *rows) noexcept nogil
cdef void attention_mix(Pass *p, int thread, const Attention *a) noexcept nogil
cdef Rows attention_out_rows(Pass *p, int thread, const Attention *a) noexcept nogil
