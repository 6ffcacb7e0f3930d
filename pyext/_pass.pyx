"""The stages that all sublayers share: norms, activations and the quantising that precedes a product, and the product itself.

Every member of the team runs the same stages in the same order; a stage is a set of shares that members claim, over when all are done. With few rows a
member computes what precedes a product for itself, in its private scratch: that is cheaper than a stage, and the bits are the same.
"""

from libc.stdint cimport int8_t, int32_t, int64_t
from libc.string cimport memcpy

from cygnet._core._kernels cimport CYG_GROUP, CYG_VALUES, cyg_activation, cyg_basis, cyg_kernels
from cygnet._core._linear cimport Linear, Rows, product_stage
from cygnet._core._threads cimport team_behind, team_claim, team_finish

cdef extern from "clock.h":
    int64_t clock_nanoseconds() noexcept nogil

FEW_ROWS = 2  # rows that each member prepares for itself


cdef inline int64_t stage_begin(const Pass *p, int thread) noexcept nogil:
    return clock_nanoseconds() if p.clock != NULL and thread == 0 else 0


cdef inline void stage_end(Pass *p, int thread, Stage stage, int64_t began) noexcept nogil:
    if p.clock != NULL and thread == 0:
        p.clock[<int>stage] += clock_nanoseconds() - began


cdef void normalize(const Pass *p, const Norm *norm, const float *x, int64_t ldx, int64_t m, int64_t d, float *y, int64_t ldy) noexcept nogil:
    if norm.kind == 1:
        p.table.layer_norm(x, ldx, m, d, norm.weight, norm.bias, norm.eps, y, ldy)
    else:
        p.table.rms_norm(x, ldx, m, d, norm.weight, norm.eps, y, ldy)


cdef inline Rows _shared_rows(Pass *p, float *x, int64_t ldx) noexcept nogil:
    cdef Rows rows
    rows.x, rows.ldx = x, ldx
    rows.q, rows.scale, rows.sum = p.codes, p.code_scales, p.code_sums
    return rows


cdef inline Rows _private_rows(Pass *p, int thread, int64_t width) noexcept nogil:
    """Room for FEW_ROWS rows and their codes in the member's scratch."""
    cdef Rows rows
    cdef char *scratch = p.scratch + thread * p.scratch_bytes
    cdef int64_t padded = (p.scratch_width + CYG_GROUP - 1) // CYG_GROUP * CYG_GROUP
    rows.x, rows.ldx = <float *>scratch, width
    rows.q = <int8_t *>(scratch + FEW_ROWS * padded * sizeof(float))
    rows.scale = <float *>(rows.q + FEW_ROWS * padded)
    rows.sum = <int32_t *>(rows.scale + FEW_ROWS * padded // CYG_GROUP)
    return rows


cdef inline void _quantize(Pass *p, cyg_basis basis, const Rows *rows, int64_t first, int64_t m, int64_t width) noexcept nogil:
    cdef int64_t groups = (width + CYG_GROUP - 1) // CYG_GROUP
    p.table.quantize_rows(basis, rows.x + first * rows.ldx, rows.ldx, m, width, rows.q + first * groups * CYG_GROUP, rows.scale + first * groups,
                          rows.sum + first * groups)


cdef inline int64_t _rows_a_share(int64_t m, int size) noexcept nogil:
    return max(1, min(<int64_t>16, m // (4 * size)))


cdef Rows prepare(Pass *p, int thread, const Norm *norm, float *source, int64_t width, float *target, cyg_basis basis, bint lasting) noexcept nogil:
    """norm(source) in `target` (which may be `source`), and its codes; `norm` NULL: the source itself.

    With few rows and a target other than the source, the result is private to the member, which leaves it unmade where the one stage that reads it is over;
    `lasting` rows are read by more than one.
    """
    cdef Rows rows
    cdef int64_t m = p.tokens, row, count, run, began = stage_begin(p, thread)
    cdef bint normed = norm != NULL and norm.kind != 0
    if not normed and basis == CYG_VALUES:
        return _shared_rows(p, source, width)
    if m <= FEW_ROWS and not (normed and target == source):
        rows = _private_rows(p, thread, width)
        if not lasting and team_behind(p.members, thread):
            return rows
        if normed:
            normalize(p, norm, source, width, m, width, rows.x, width)
        else:
            rows.x = source
        if basis != CYG_VALUES:
            _quantize(p, basis, &rows, 0, m, width)
        stage_end(p, thread, STAGE_NORM, began)
        return rows
    rows = _shared_rows(p, target if normed else source, width)
    run = _rows_a_share(m, p.members.size)
    while True:
        row = team_claim(p.members, thread, run, m)
        if row >= m:
            break
        count = min(run, m - row)
        if normed:
            normalize(p, norm, source + row * width, width, count, width, target + row * width, width)
        if basis != CYG_VALUES:
            _quantize(p, basis, &rows, row, count, width)
    team_finish(p.members, thread, m)
    stage_end(p, thread, STAGE_NORM, began)
    return rows


cdef inline void _activate(Pass *p, cyg_activation activation, bint gated, const float *wide, int64_t ld, int64_t m, int64_t width, float *y,
                           int64_t ldy) noexcept nogil:
    cdef int64_t i
    if gated:
        p.table.gate(activation, wide, ld, wide + width, ld, m, width, y, ldy)
        return
    for i in range(m):
        p.table.activate(activation, wide + i * ld, width, y + i * ldy)


cdef Rows prepare_gated(Pass *p, int thread, int activation, bint gated, float *wide, int64_t ld, int64_t m, int64_t width, cyg_basis basis) noexcept nogil:
    """f(wide), or f(gate) * up of rows that hold gate and up side by side, and its codes; in place unless rows are few."""
    cdef Rows rows
    cdef int64_t row, run, began = stage_begin(p, thread)
    cdef cyg_activation f = <cyg_activation>activation
    if m <= FEW_ROWS:
        rows = _private_rows(p, thread, width)
        if team_behind(p.members, thread):
            return rows
        _activate(p, f, gated, wide, ld, m, width, rows.x, width)
        if basis != CYG_VALUES:
            _quantize(p, basis, &rows, 0, m, width)
        stage_end(p, thread, STAGE_ACTIVATION, began)
        return rows
    rows = _shared_rows(p, wide, ld)
    run = _rows_a_share(m, p.members.size)
    while True:
        row = team_claim(p.members, thread, run, m)
        if row >= m:
            break
        for row in range(row, min(row + run, m)):
            _activate(p, f, gated, wide + row * ld, ld, 1, width, wide + row * ld, ld)
            if basis != CYG_VALUES:
                _quantize(p, basis, &rows, row, 1, width)  # while the row is in the first-level cache
    team_finish(p.members, thread, m)
    stage_end(p, thread, STAGE_ACTIVATION, began)
    return rows


cdef void product(Pass *p, int thread, Stage stage, const Linear *parts, int count, const Rows *rows, float alpha, int accumulate, float *y,
                  int64_t ldy) noexcept nogil:
    """y = alpha (rows W^T + b) (+ y) for all rows of the pass, a stage of its own."""
    cdef int64_t began = stage_begin(p, thread)
    product_stage(p.table, p.members, thread, parts, count, rows, p.tokens, alpha, accumulate, y, ldy)
    stage_end(p, thread, stage, began)
