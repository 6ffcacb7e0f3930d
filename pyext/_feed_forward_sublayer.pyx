"""The feed-forward sublayer: down(f(gate(x)) * up(x)) or down(f(up(x))), dense or as a mixture of experts (Shazeer et al. 2017).

Experts work on rows sorted by expert: the router's choice of all tokens gives each expert one block of rows, and shares are (expert, panels).
"""

from libc.math cimport INFINITY, exp, expf
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.string cimport memcpy

from cygnet._core._kernels cimport CYG_GROUP, CYG_I8, CYG_VALUES, cyg_activation, cyg_basis, cyg_product
from cygnet._core._linear cimport Linear, Rows, basis_of
from cygnet._core._pass cimport (STAGE_ACTIVATION, STAGE_DOWN, STAGE_UP, Pass, prepare_gated, product, stage_begin, stage_end)
from cygnet._core._threads cimport team_claim, team_finish, team_meet


cdef cyg_basis feed_forward_basis(const FeedForward *f) noexcept nogil:
    """How the sublayer's input must come to gate and up; routers and the experts' gates take it as it is."""
    return basis_of(f.up, f.up_parts) if f.width else CYG_VALUES


cdef void feed_forward_up(Pass *p, int thread, const FeedForward *f, const Rows *rows) noexcept nogil:
    """What reads the sublayer's input: gate and up, and with experts the router and everything up to the experts' hidden rows."""
    if f.width:
        product(p, thread, STAGE_UP, f.up, f.up_parts, rows, 1.0, 0, p.wide, f.width * (2 if f.gated else 1))
    if f.experts != NULL:
        if f.experts.shared_gate != NULL:
            product(p, thread, STAGE_UP, f.experts.shared_gate, 1, rows, 1.0, 0, p.router + p.tokens * f.experts.count, 1)
        product(p, thread, STAGE_UP, f.experts.router, 1, rows, 1.0, 0, p.router, f.experts.count)
        _experts_up(p, thread, f, rows)


cdef void feed_forward_down(Pass *p, int thread, const FeedForward *f, float alpha, int accumulate, float *y, int64_t d) noexcept nogil:
    """y = alpha * sublayer output (+ y); y is (T, d)."""
    cdef Rows rows
    cdef float gate
    cdef int64_t row
    if f.width:
        rows = prepare_gated(p, thread, f.activation, f.gated, p.wide, f.width * (2 if f.gated else 1), p.tokens, f.width, basis_of(f.down, 1))
        if f.experts != NULL and f.experts.shared_gate != NULL:
            # The shared expert's output times its own gate: scaled per row, so it goes through the branch buffer.
            product(p, thread, STAGE_DOWN, f.down, 1, &rows, 1.0, 0, p.expert_rows + p.tokens * f.experts.top_k * d, d)
        else:
            product(p, thread, STAGE_DOWN, f.down, 1, &rows, alpha, accumulate, y, d)
            accumulate = 1
    if f.experts != NULL:
        _experts_down(p, thread, f, alpha, accumulate, y, d)


cdef void _route(Pass *p, const FeedForward *f, int64_t d, const float *x, int64_t ldx) noexcept nogil:
    """Chooses every token's experts and lays the rows out expert by expert; one member does it."""
    cdef const Experts *e = f.experts
    cdef int64_t row, choice, best, i, slots = p.tokens * e.top_k
    cdef int32_t *chosen = p.expert_token + slots      # expert of (token, choice)
    cdef float *weights = p.expert_weight + slots      # weight of (token, choice)
    cdef int64_t *fill = p.expert_start + e.count + 1  # next free row of an expert
    cdef float *scores
    cdef float most
    cdef double total, kept
    for i in range(e.count + 1):
        p.expert_start[i] = 0
    for row in range(p.tokens):
        scores = p.router + row * e.count
        most = scores[0]
        for i in range(1, e.count):
            most = max(most, scores[i])
        total = 0
        for i in range(e.count):
            scores[i] = expf(scores[i] - most)
            total += scores[i]
        kept = 0
        for choice in range(e.top_k):
            best = -1
            for i in range(e.count):
                if scores[i] >= 0 and (best < 0 or scores[i] > scores[best]):
                    best = i
            best = max(best, 0)  # all scores NaN: the token's output is NaN whichever expert it passes
            chosen[row * e.top_k + choice] = <int32_t>best
            weights[row * e.top_k + choice] = scores[best]
            kept += scores[best]
            p.expert_start[best + 1] += 1
            scores[best] = -1
        for choice in range(e.top_k):
            weights[row * e.top_k + choice] = <float>(weights[row * e.top_k + choice] / (kept if e.renormalize else total))
    for i in range(e.count):
        p.expert_start[i + 1] += p.expert_start[i]
        fill[i] = p.expert_start[i]
    for i in range(slots):
        best = fill[chosen[i]]
        fill[chosen[i]] += 1
        p.expert_token[best] = <int32_t>(i // e.top_k)
        p.expert_weight[best] = weights[i]
        chosen[i] = <int32_t>best  # from now on: the row of (token, choice)


cdef inline int64_t _expert_run(const Linear *w, int size) noexcept nogil:
    """Panels of a share."""
    return max(1, w.panels // (4 * size))


cdef inline int64_t _expert_shares(const Linear *w, int size) noexcept nogil:
    return (w.panels + _expert_run(w, size) - 1) // _expert_run(w, size)


cdef void _experts_stage(Pass *p, int thread, const Linear *weights, int64_t experts, int64_t parts, const Rows *rows, float *y, int64_t ldy) noexcept nogil:
    """Each expert's product on its own rows."""
    cdef cyg_product share
    cdef const Linear *w
    cdef int64_t expert, part, first = 0, total = 0, index, run, count, row, groups
    for expert in range(experts):
        if p.expert_start[expert + 1] > p.expert_start[expert]:
            for part in range(parts):
                total += _expert_shares(&weights[expert * parts + part], p.members.size)
    index = team_claim(p.members, thread, 1, total)
    for expert in range(experts):
        row = p.expert_start[expert]
        if p.expert_start[expert + 1] == row:
            continue
        for part in range(parts):
            w = &weights[expert * parts + part]
            run = _expert_run(w, p.members.size)
            count = _expert_shares(w, p.members.size)
            groups = (w.k + CYG_GROUP - 1) // CYG_GROUP
            while index < first + count:
                share.weight, share.n, share.k, share.bias = w.data, w.n, w.k, w.bias
                share.first_panel, share.last_panel = (index - first) * run, min((index - first + 1) * run, w.panels)
                share.m = p.expert_start[expert + 1] - row
                share.x, share.ldx = rows.x + row * rows.ldx, rows.ldx
                if w.kind >= CYG_I8:
                    share.q, share.q_scale, share.q_sum = rows.q + row * groups * CYG_GROUP, rows.scale + row * groups, rows.sum + row * groups
                share.alpha, share.accumulate = 1.0, 0
                share.y, share.ldy = y + row * ldy + w.column, ldy
                p.table.product[<int>w.kind](&share)
                index = team_claim(p.members, thread, 1, total)
            first += count
    team_finish(p.members, thread, total)


cdef Rows _expert_codes(Pass *p, int thread, float *x, int64_t ldx, int64_t width, int64_t m, cyg_basis basis) noexcept nogil:
    """Rows sorted by expert as products read them."""
    cdef Rows rows
    cdef int64_t row, groups = (width + CYG_GROUP - 1) // CYG_GROUP
    rows.x, rows.ldx, rows.q, rows.scale, rows.sum = x, ldx, p.codes, p.code_scales, p.code_sums
    if basis != CYG_VALUES:
        while True:
            row = team_claim(p.members, thread, 1, m)
            if row >= m:
                break
            p.table.quantize_rows(basis, x + row * ldx, ldx, 1, width, rows.q + row * groups * CYG_GROUP, rows.scale + row * groups, rows.sum + row * groups)
        team_finish(p.members, thread, m)
    return rows


cdef void _experts_up(Pass *p, int thread, const FeedForward *f, const Rows *input) noexcept nogil:
    cdef const Experts *e = f.experts
    cdef int64_t began = stage_begin(p, thread), slots = p.tokens * e.top_k, row, d = e.up.k, parts = 2 if f.gated else 1
    cdef Rows rows
    # The layout of the rows is about to change: nobody may still be reading the one of the layer before.
    team_meet(p.members, thread)
    if team_claim(p.members, thread, 1, 1) == 0:
        _route(p, f, d, input.x, input.ldx)
    team_finish(p.members, thread, 1)
    while True:
        row = team_claim(p.members, thread, 1, slots)
        if row >= slots:
            break
        memcpy(p.expert_rows + row * d, input.x + p.expert_token[row] * input.ldx, d * sizeof(float))
    team_finish(p.members, thread, slots)
    rows = _expert_codes(p, thread, p.expert_rows, d, d, slots, basis_of(e.up, <int>(e.count * parts)))
    _experts_stage(p, thread, e.up, e.count, parts, &rows, p.expert_wide, e.width * parts)
    stage_end(p, thread, STAGE_UP, began)


cdef void _experts_down(Pass *p, int thread, const FeedForward *f, float alpha, int accumulate, float *y, int64_t d) noexcept nogil:
    """The experts' outputs, weighted and added in the order of each token's choices."""
    cdef const Experts *e = f.experts
    cdef int64_t began = stage_begin(p, thread), slots = p.tokens * e.top_k, row, choice, ld = e.width * (2 if f.gated else 1)
    cdef const int32_t *row_of = p.expert_token + slots
    cdef const float *shared = p.expert_rows + slots * d
    cdef Rows rows
    cdef float gate
    rows = prepare_gated(p, thread, f.activation, f.gated, p.expert_wide, ld, slots, e.width, basis_of(e.down, e.count))
    _experts_stage(p, thread, e.down, e.count, 1, &rows, p.expert_rows, d)
    while True:
        row = team_claim(p.members, thread, 1, p.tokens)
        if row >= p.tokens:
            break
        if not accumulate:
            for choice in range(d):
                y[row * d + choice] = 0
        for choice in range(e.top_k):
            p.table.axpy(d, alpha * p.expert_weight[row_of[row * e.top_k + choice]], p.expert_rows + row_of[row * e.top_k + choice] * d, y + row * d)
        if f.width and e.shared_gate != NULL:
            gate = 1 / (1 + expf(-p.router[p.tokens * e.count + row]))
            p.table.axpy(d, alpha * gate, shared + row * d, y + row * d)
    team_finish(p.members, thread, p.tokens)
    stage_end(p, thread, STAGE_DOWN, began)
