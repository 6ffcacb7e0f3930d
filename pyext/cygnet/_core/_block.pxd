"""One Transformer block; see pyext/_block.pyx."""

from libc.stdint cimport int64_t

from cygnet._core._attention_sublayer cimport Attention
from cygnet._core._feed_forward_sublayer cimport FeedForward
from cygnet._core._pass cimport Norm, Pass
from cygnet._core._recurrent_sublayer cimport Recurrent

cdef enum Placement:
    PLACE_PRE, PLACE_POST, PLACE_SANDWICH, PLACE_OUTPUT, PLACE_PARALLEL, PLACE_PARALLEL_SPLIT, PLACE_NORMED

cdef struct Layer:
    int placement
    int64_t width            # hidden size
    float residual_scale
    Norm attention_norm, attention_post_norm, cross_norm, ffn_norm, ffn_post_norm
    Attention attention
    const Recurrent *recurrent  # not NULL: in the place of attention
    const Attention *cross   # NULL: none
    FeedForward ffn

cdef const Norm *block_forward(Pass *p, int thread, const Layer *layer, const Norm *pending) noexcept nogil
cdef void settle(Pass *p, int thread, const Norm *pending, int64_t width) noexcept nogil
