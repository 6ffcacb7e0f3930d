"""A feed-forward sublayer, dense or of experts; see pyext/_feed_forward_sublayer.pyx."""

from libc.stdint cimport int64_t

from cygnet._core._kernels cimport cyg_basis
from cygnet._core._linear cimport Linear, Rows
from cygnet._core._pass cimport Pass

cdef struct Experts:
    int count, top_k
    bint renormalize
    int64_t width             # hidden size of one expert
    const Linear *router
    const Linear *up          # count x parts (gate and up, or up alone)
    const Linear *down        # count
    const Linear *shared_gate # NULL: the shared expert counts fully, if there is one

cdef struct FeedForward:
    int activation            # enum cyg_activation
    bint gated
    int64_t width             # hidden size; 0: experts only
    const Linear *up          # gate and up side by side, or up alone
    int up_parts
    const Linear *down
    const Experts *experts

cdef cyg_basis feed_forward_basis(const FeedForward *f) noexcept nogil
cdef void feed_forward_up(Pass *p, int thread, const FeedForward *f, const Rows *rows) noexcept nogil
cdef void feed_forward_down(Pass *p, int thread, const FeedForward *f, float alpha, int accumulate, float *y, int64_t d) noexcept nogil
