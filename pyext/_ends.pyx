"""Both ends of a pass: embeddings before the first layer; hidden states, or the head's outputs of chosen rows, behind the last."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from cygnet._core._kernels cimport cyg_activation
from cygnet._core._linear cimport Rows, basis_of
from cygnet._core._pass cimport STAGE_EMBED, STAGE_HEAD, Pass, normalize, prepare, product, stage_begin, stage_end
from cygnet._core._stack cimport HeadStep, StackLayout
from cygnet._core._threads cimport team_claim, team_finish

from operator import index

from cygnet.errors import OptionError


def gather_ids(list batch, int64_t token_count, int32_t[::1] out):
    """All token ids of a batch one after the other in `out`, which has room for just them, checked to be integers from 0 to token_count - 1."""
    cdef int64_t token, at = 0
    for ids in batch:
        for item in ids:
            try:
                token = index(item)
            except TypeError:
                raise OptionError("token ids must be integers") from None
            except OverflowError:
                token = -1
            if not 0 <= token < token_count:
                raise OptionError(f"token id {item} lies outside the vocabulary of {token_count}")
            out[at] = <int32_t>token
            at += 1


cdef inline void _add(int64_t n, const float *x, float *y) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        y[i] += x[i]


cdef void embed(Work *work, int thread) noexcept nogil:
    """token * scale [+ position] [+ type] [-> norm] [-> project] in p.x."""
    cdef Pass *p = &work.p
    cdef const StackLayout *stack = work.stack
    cdef int64_t row, i, width = stack.embed_width if work.embedded == NULL else stack.width, began = stage_begin(p, thread)
    cdef float *target = work.project_input if stack.embed_project != NULL and work.embedded == NULL else p.x
    cdef float *e
    cdef Rows rows
    while True:
        row = team_claim(p.members, thread, 4, p.tokens)
        if row >= p.tokens:
            break
        for row in range(row, min(row + 4, p.tokens)):
            e = target + row * width
            if work.embedded != NULL:
                memcpy(e, work.embedded + row * width, width * sizeof(float))
            else:
                p.table.unpack_row(stack.tokens.kind, stack.tokens.data, width, work.ids[row], e)
                if stack.embed_scale != 1:
                    for i in range(width):
                        e[i] *= stack.embed_scale
                if work.rows_of != NULL and not stack.positions_after_project:
                    _add(width, stack.positions + work.rows_of[row] * width, e)
                if work.types != NULL and stack.types != NULL:
                    _add(width, stack.types + work.types[row] * width, e)
            if stack.embed_norm.kind:
                normalize(p, &stack.embed_norm, e, width, 1, width, e, width)
    team_finish(p.members, thread, p.tokens)
    if target == work.project_input:
        rows = prepare(p, thread, NULL, target, width, NULL, basis_of(stack.embed_project, 1), False)
        product(p, thread, STAGE_EMBED, stack.embed_project, 1, &rows, 1.0, 0, p.x, stack.width)
    if stack.positions_after_project and work.rows_of != NULL:
        while True:
            row = team_claim(p.members, thread, 1, p.tokens)
            if row >= p.tokens:
                break
            _add(stack.width, stack.positions + work.rows_of[row] * stack.width, p.x + row * stack.width)
        team_finish(p.members, thread, p.tokens)
    stage_end(p, thread, STAGE_EMBED, began)


cdef void write_hidden(Work *work, int thread) noexcept nogil:
    """The hidden states after the final norm and projection."""
    cdef Pass *p = &work.p
    cdef const StackLayout *stack = work.stack
    cdef int64_t row, d = stack.width
    cdef float *target = p.h if stack.final_project != NULL else work.hidden
    cdef Rows rows
    while True:
        row = team_claim(p.members, thread, 1, p.tokens)
        if row >= p.tokens:
            break
        if stack.final_norm.kind:
            normalize(p, &stack.final_norm, p.x + row * d, d, 1, d, target + row * d, d)
        else:
            memcpy(target + row * d, p.x + row * d, d * sizeof(float))
    team_finish(p.members, thread, p.tokens)
    if stack.final_project != NULL:
        rows = prepare(p, thread, NULL, target, d, NULL, basis_of(stack.final_project, 1), False)
        product(p, thread, STAGE_HEAD, stack.final_project, 1, &rows, 1.0, 0, work.hidden, stack.output_width)


cdef void head(Work *work, int thread) noexcept nogil:
    """Head outputs of the chosen rows: gathered and normalised, then step by step."""
    cdef Pass p = work.p
    cdef const StackLayout *stack = work.stack
    cdef const HeadStep *step
    cdef int64_t row, d = stack.width, began = stage_begin(&p, thread)
    cdef float *source = work.head_a
    cdef float *target = work.head_b
    cdef Rows rows
    cdef int i
    p.tokens = work.head_count
    while True:
        row = team_claim(p.members, thread, 1, work.head_count)
        if row >= work.head_count:
            break
        if stack.final_norm.kind:
            normalize(&p, &stack.final_norm, work.p.x + work.head_rows[row] * d, d, 1, d, source + row * d, d)
        else:
            memcpy(source + row * d, work.p.x + work.head_rows[row] * d, d * sizeof(float))
    team_finish(p.members, thread, work.head_count)
    stage_end(&p, thread, STAGE_HEAD, began)
    if stack.final_project != NULL:
        rows = prepare(&p, thread, NULL, source, d, NULL, basis_of(stack.final_project, 1), False)
        product(&p, thread, STAGE_HEAD, stack.final_project, 1, &rows, 1.0, 0, target, stack.output_width)
        source, target = target, source
        d = stack.output_width
    for i in range(stack.head_count):
        step = &stack.head_steps[i]
        if i + 1 == stack.head_count:
            target = work.logits
        rows.x = source
        if step.weight != NULL:
            rows = prepare(&p, thread, NULL, source, d, NULL, basis_of(step.weight, 1), False)
            product(&p, thread, STAGE_HEAD, step.weight, 1, &rows, stack.head_scale if i + 1 == stack.head_count else 1.0, 0, target, step.width)
        _finish_step(&p, thread, stack, step, i + 1 == stack.head_count, source if step.weight == NULL else target, target)
        d = step.width
        source, target = target, source


cdef void _finish_step(Pass *p, int thread, const StackLayout *stack, const HeadStep *step, bint last, float *source, float *target) noexcept nogil:
    """Activation, norm and soft cap of a head step, row by row."""
    cdef int64_t row, d = step.width, began = stage_begin(p, thread)
    cdef bint cap = last and stack.head_softcap > 0
    if step.activation == 0 and step.norm.kind == 0 and not cap and source == target:
        return
    while True:
        row = team_claim(p.members, thread, 1, p.tokens)
        if row >= p.tokens:
            break
        if step.activation:
            p.table.activate(<cyg_activation>step.activation, source + row * d, d, target + row * d)
        elif source != target:
            memcpy(target + row * d, source + row * d, d * sizeof(float))
        if step.norm.kind:
            normalize(p, &step.norm, target + row * d, d, 1, d, target + row * d, d)
        if cap:
            p.table.softcap(d, stack.head_softcap, target + row * d)
    team_finish(p.members, thread, p.tokens)
    stage_end(p, thread, STAGE_HEAD, began)
