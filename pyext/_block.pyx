"""One Transformer block from its description: where the norms stand, what is added to what.

A post-norm is not applied when its sublayer ends but when x is next read, together with what that reader needs: it stays `pending` between.
"""

from libc.stdint cimport int64_t

from cygnet._core._attention_sublayer cimport Attention, attention_in, attention_mix, attention_out_rows
from cygnet._core._feed_forward_sublayer cimport FeedForward, feed_forward_basis, feed_forward_down, feed_forward_up
from cygnet._core._kernels cimport CYG_VALUES, cyg_basis
from cygnet._core._linear cimport Rows, basis_of
from cygnet._core._pass cimport STAGE_NORM, STAGE_OUTPUT, Norm, Pass, normalize, prepare, product, stage_begin, stage_end
from cygnet._core._recurrent_sublayer cimport Recurrent, recurrent_in, recurrent_mix
from cygnet._core._threads cimport team_claim, team_finish


cdef Rows _input(Pass *p, int thread, const Layer *layer, const Norm *norm, const Norm *pending, cyg_basis basis, bint lasting) noexcept nogil:
    """What a sublayer reads: x after its pending norm, normalised first unless the norm stands elsewhere."""
    cdef bint before = layer.placement != PLACE_POST and layer.placement != PLACE_OUTPUT
    if pending != NULL and not before:
        return prepare(p, thread, pending, p.x, layer.width, p.x, basis, lasting)
    return prepare(p, thread, norm if before else NULL, p.x, layer.width, p.x if layer.placement == PLACE_NORMED else p.h, basis, lasting)


cdef const Norm *_leave(Pass *p, int thread, const Layer *layer, const Norm *norm, const Norm *post_norm) noexcept nogil:
    """Ends a sublayer whose output is in x already, or in p.branch where a norm comes before it is added; returns the pending norm."""
    if layer.placement == PLACE_POST:
        return norm
    if layer.placement == PLACE_SANDWICH:
        _add_normed(p, thread, layer, post_norm)
    elif layer.placement == PLACE_OUTPUT:
        _add_normed(p, thread, layer, norm)
    return NULL


cdef void _add_normed(Pass *p, int thread, const Layer *layer, const Norm *norm) noexcept nogil:
    """x += residual_scale * norm(branch)."""
    cdef int64_t row, d = layer.width, began = stage_begin(p, thread)
    while True:
        row = team_claim(p.members, thread, 1, p.tokens)
        if row >= p.tokens:
            break
        normalize(p, norm, p.branch + row * d, d, 1, d, p.branch + row * d, d)
        p.table.axpy(d, layer.residual_scale, p.branch + row * d, p.x + row * d)
    team_finish(p.members, thread, p.tokens)
    stage_end(p, thread, STAGE_NORM, began)


cdef void _attention_output(Pass *p, int thread, const Layer *layer, const Attention *a, bint branch) noexcept nogil:
    cdef Rows rows = attention_out_rows(p, thread, a)
    if branch:
        product(p, thread, STAGE_OUTPUT, a.output, 1, &rows, 1.0, 0, p.branch, layer.width)
    else:
        product(p, thread, STAGE_OUTPUT, a.output, 1, &rows, layer.residual_scale, 1, p.x, layer.width)


cdef void _recurrence(Pass *p, int thread, const Layer *layer, const Norm *pending, bint branch) noexcept nogil:
    cdef const Recurrent *r = layer.recurrent
    cdef Rows rows = _input(p, thread, layer, &layer.attention_norm, pending, basis_of(r.parts, r.count), False)
    recurrent_in(p, thread, r, &rows)
    recurrent_mix(p, thread, r, 1.0 if branch else layer.residual_scale, not branch, p.branch if branch else p.x)


cdef void _feed_forward_output(Pass *p, int thread, const Layer *layer, bint branch) noexcept nogil:
    if branch:
        feed_forward_down(p, thread, &layer.ffn, 1.0, 0, p.branch, layer.width)
    else:
        feed_forward_down(p, thread, &layer.ffn, layer.residual_scale, 1, p.x, layer.width)


cdef const Norm *block_forward(Pass *p, int thread, const Layer *layer, const Norm *pending) noexcept nogil:
    """One block on p.x in place; `pending` is a norm that x still needs, and so is what is returned (NULL: none)."""
    cdef Rows rows
    cdef bint branch = layer.placement == PLACE_SANDWICH or layer.placement == PLACE_OUTPUT
    cdef const Attention *a = &layer.attention
    if layer.placement == PLACE_PARALLEL or layer.placement == PLACE_PARALLEL_SPLIT:
        _parallel(p, thread, layer)
        return NULL
    if layer.recurrent != NULL:
        _recurrence(p, thread, layer, pending, branch)
    else:
        rows = _input(p, thread, layer, &layer.attention_norm, pending, basis_of(a.qkv, a.qkv_parts), False)
        attention_in(p, thread, a, &rows)
        attention_mix(p, thread, a)
        _attention_output(p, thread, layer, a, branch)
    pending = _leave(p, thread, layer, &layer.attention_norm, &layer.attention_post_norm)
    if layer.cross != NULL:
        a = layer.cross
        rows = _input(p, thread, layer, &layer.cross_norm, pending, basis_of(a.qkv, a.qkv_parts), False)
        attention_in(p, thread, a, &rows)
        attention_mix(p, thread, a)
        _attention_output(p, thread, layer, a, branch)
        pending = _leave(p, thread, layer, &layer.cross_norm, NULL)
    rows = _input(p, thread, layer, &layer.ffn_norm, pending, feed_forward_basis(&layer.ffn), layer.ffn.experts != NULL)
    feed_forward_up(p, thread, &layer.ffn, &rows)
    _feed_forward_output(p, thread, layer, branch)
    return _leave(p, thread, layer, &layer.ffn_norm, &layer.ffn_post_norm)


cdef void _parallel(Pass *p, int thread, const Layer *layer) noexcept nogil:
    """x += attention(norm(x)) + ffn(norm'(x)): both read x before either is added."""
    cdef const Attention *a = &layer.attention
    cdef bint split = layer.placement == PLACE_PARALLEL_SPLIT
    cdef cyg_basis basis = basis_of(a.qkv, a.qkv_parts)
    cdef Rows rows
    if basis == CYG_VALUES and not split:
        basis = feed_forward_basis(&layer.ffn)
    rows = prepare(p, thread, &layer.attention_norm, p.x, layer.width, p.h, basis, True)
    attention_in(p, thread, a, &rows)
    if split:
        rows = prepare(p, thread, &layer.ffn_norm, p.x, layer.width, p.h, feed_forward_basis(&layer.ffn), True)
    feed_forward_up(p, thread, &layer.ffn, &rows)
    attention_mix(p, thread, a)
    _attention_output(p, thread, layer, a, False)
    _feed_forward_output(p, thread, layer, False)


cdef void settle(Pass *p, int thread, const Norm *pending, int64_t width) noexcept nogil:
    """Applies a pending norm to x."""
    if pending != NULL:
        prepare(p, thread, pending, p.x, width, p.x, CYG_VALUES, False)
