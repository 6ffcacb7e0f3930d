"""A stack of blocks; see pyext/_stack.pyx."""

from libc.stdint cimport int64_t

from cygnet._core._attention_sublayer cimport Attention, Disentangled
from cygnet._core._block cimport Layer
from cygnet._core._feed_forward_sublayer cimport FeedForward
from cygnet._core._linear cimport Linear, Weight
from cygnet._core._pass cimport Norm
from cygnet._core._recurrent_sublayer cimport Recurrent

cdef struct HeadStep:
    const Linear *weight     # NULL: a norm alone
    int activation
    Norm norm
    int64_t width            # outputs

cdef struct StackLayout:
    int64_t width, output_width, logit_count
    int count
    Layer *layers
    Attention *cross
    # embedding
    const Linear *tokens
    int64_t token_count, position_count, type_count, embed_width
    float embed_scale
    const float *positions
    const float *types
    Norm embed_norm
    const Linear *embed_project
    bint positions_after_project
    # end
    Norm final_norm
    const Linear *final_project
    HeadStep *head_steps
    int head_count
    float head_scale, head_softcap
    # the widest row of each buffer
    int64_t qkv_width, mixed_width, wide_width, code_width, head_width, positional_width, positional_rows
    int64_t part_width, key_heads, room_width  # most of any layer: a row of Pass.parts, key heads, floats of attention's room
    int64_t expert_count, expert_top_k, expert_width
    # elements of key/value blocks
    int64_t block_elements, cross_elements

cdef class Stack:
    cdef StackLayout layout
    cdef int layer_limit, kv_slots
    cdef list kept, pieces

    cdef void *_piece(self, size_t size) except NULL
    cdef const float *_floats(self, array) except? NULL
    cdef Norm _norm(self, description) except *
    cdef const Linear *_parts(self, Weight weight)
    cdef int _attention(self, Attention *a, dict d, bint cross) except -1
    cdef int64_t _place(self, int64_t width)
    cdef const Recurrent *_recurrent(self, Weight weight) except NULL
    cdef const Disentangled *_disentangled(self, dict d) except NULL
    cdef const Linear *_each(self, weights) except NULL
    cdef int _feed_forward(self, FeedForward *f, dict d) except -1
