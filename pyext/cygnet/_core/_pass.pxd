"""One forward pass: what its stages read and write; see pyext/_pass.pyx."""

from libc.stdint cimport int8_t, int32_t, int64_t

from cygnet._core._kernels cimport cyg_basis, cyg_kernels, cyg_kv_kind
from cygnet._core._linear cimport Linear, Rows
from cygnet._core._threads cimport team, team_counter

cdef struct Norm:
    int kind             # 0: none, 1: layer norm, 2: RMS norm
    float eps
    const float *weight  # NULL: ones
    const float *bias    # NULL: zeros

cdef struct Rope:
    int64_t half         # pairs that are rotated; 0: none
    int interleaved
    const float *cos     # (positions, half)
    const float *sin

cdef struct Bias:
    # Added to attention scores: by distance, `by_distance` pointing at distance 0 of head 0, or by key.
    const float *by_distance
    int64_t distance_stride
    const float *by_key
    int64_t key_stride

cdef struct View:
    # One sequence in the pass: rows row .. row + count - 1 are its tokens start .. start + count - 1.
    int64_t row, count, start
    void **blocks          # its own keys and values
    void **source_blocks   # those of what it attends to across
    int64_t source_keys
    int ropes              # first of its rope tables
    int64_t part           # its first row in Pass.parts, in a pass that splits keys

cdef enum Stage:
    STAGE_EMBED, STAGE_NORM, STAGE_QKV, STAGE_ATTENTION, STAGE_OUTPUT, STAGE_UP, STAGE_ACTIVATION, STAGE_DOWN, STAGE_HEAD, STAGES

cdef struct Pass:
    const cyg_kernels *table
    team *members
    int64_t tokens         # T, rows of every buffer
    View *views
    int64_t view_count
    int32_t *view_of       # (T) which view a row belongs to
    bint single            # every view has one row
    cyg_kv_kind kv_kind
    const Rope *ropes
    const Bias *biases
    # Buffers of T rows, shared by all members.
    float *x               # the residual stream
    float *h               # a normalised x
    float *qkv
    float *mixed           # attention's result, heads side by side
    float *wide            # inside the feed-forward
    float *branch          # a sublayer's output where a norm follows before it is added
    float *positional      # disentangled attention: every key times every relative position
    int8_t *codes
    float *code_scales
    int32_t *code_sums
    float *parts           # what chunks of keys make of a few rows, NULL: chunks are not shared among members
    team_counter *arrived  # (views, key heads) chunks that are done
    int *beyond            # set when a key or value does not fit float16
    # Experts: rows sorted by expert.
    float *router
    float *expert_rows
    float *expert_wide
    int32_t *expert_token
    float *expert_weight
    int64_t *expert_start
    # One private piece a member.
    char *scratch
    size_t scratch_bytes
    size_t room_offset     # where attention's own room begins in it
    int64_t scratch_width  # floats of a private row
    int64_t *clock         # nanoseconds a stage, or NULL

cdef int64_t FEW_ROWS
cdef void stage_end(Pass *p, int thread, Stage stage, int64_t began) noexcept nogil
cdef int64_t stage_begin(const Pass *p, int thread) noexcept nogil
cdef void normalize(const Pass *p, const Norm *norm, const float *x, int64_t ldx, int64_t m, int64_t d, float *y, int64_t ldy) noexcept nogil
cdef Rows prepare(Pass *p, int thread, const Norm *norm, float *source, int64_t width, float *target, cyg_basis basis, bint lasting) noexcept nogil
cdef Rows prepare_gated(Pass *p, int thread, int activation, bint gated, float *wide, int64_t ld, int64_t m, int64_t width, cyg_basis basis) noexcept nogil
cdef void product(Pass *p, int thread, Stage stage, const Linear *parts, int count, const Rows *rows, float alpha, int accumulate, float *y,
                  int64_t ldy) noexcept nogil
