"""The SSRU, a recurrent unit in the place of self-attention (Kim et al. 2019): c_t = f_t c_(t-1) + (1 - f_t) v_t, and relu(c_t) goes on.

The state after token t lies in the key/value block of position t, as a key would: what forks, shares or truncates a sequence needs to know nothing
of it, and a token's result has the same bits whether the state before it came in the same pass or long ago.
"""

from libc.stdint cimport int64_t

from cygnet._core._kernels cimport CYG_KEY_BLOCK, CYG_KV_F32, CYG_SIGMOID
from cygnet._core._linear cimport Linear, Rows
from cygnet._core._pass cimport STAGE_ATTENTION, STAGE_QKV, Pass, View, product, stage_begin, stage_end
from cygnet._core._threads cimport team_claim, team_finish

cdef int64_t COLUMNS = 64  # features of a share: a sequence's tokens follow one another, its features are independent


cdef void recurrent_in(Pass *p, int thread, const Recurrent *r, const Rows *rows) noexcept nogil:
    """Forget gates and inputs of all rows, side by side in p.qkv."""
    product(p, thread, STAGE_QKV, r.parts, r.count, rows, 1.0, 0, p.qkv, 2 * r.width)


cdef void recurrent_mix(Pass *p, int thread, const Recurrent *r, float alpha, int accumulate, float *y) noexcept nogil:
    """y = alpha relu(c) (+ y); y is (T, width)."""
    cdef int64_t share, began = stage_begin(p, thread), pieces = (r.width + COLUMNS - 1) // COLUMNS, total = p.view_count * pieces
    while True:
        share = team_claim(p.members, thread, 1, total)
        if share >= total:
            break
        _scan(p, r, &p.views[share // pieces], share % pieces * COLUMNS, alpha, accumulate, y)
    team_finish(p.members, thread, total)
    stage_end(p, thread, STAGE_ATTENTION, began)


cdef inline float *_state(Pass *p, const Recurrent *r, const View *view, int64_t position) noexcept nogil:
    """The state of a position, always float32: it has the room of a key and a value, of half precision or not."""
    cdef size_t size = 4 if p.kv_kind == CYG_KV_F32 else 2
    return <float *>(<char *>view.blocks[position // CYG_KEY_BLOCK] + r.offset * size) + position % CYG_KEY_BLOCK * r.width


cdef void _scan(Pass *p, const Recurrent *r, const View *view, int64_t first, float alpha, int accumulate, float *y) noexcept nogil:
    """COLUMNS features from `first` on of all new tokens of a sequence."""
    cdef int64_t row, i, position, count = min(COLUMNS, r.width - first)
    cdef const float *before = NULL
    cdef const float *new
    cdef float *forget
    cdef float *state
    cdef float *out
    for row in range(view.row, view.row + view.count):
        position = view.start + row - view.row
        forget = p.qkv + row * 2 * r.width + first
        new, out = forget + r.width, y + row * r.width + first
        p.table.activate(CYG_SIGMOID, forget, count, forget)
        if position > 0:
            before = _state(p, r, view, position - 1) + first
        state = _state(p, r, view, position) + first
        for i in range(count):
            state[i] = (1 - forget[i]) * new[i] + (forget[i] * before[i] if position > 0 else 0)
            out[i] = alpha * max(state[i], <float>0) + (out[i] if accumulate else 0)
