"""The attention sublayer: projections, positions and key/value memory, and the fused kernel over (sequence, key head, query tile) shares.

Keys and values are always read from blocks, cached or not, in blocks of CYG_KEY_BLOCK keys counted from the start of the sequence: that is why a
token's result has the same bits whether its prefix came in the same pass, in chunks, or long ago.
"""

from libc.stdint cimport int32_t, int64_t

from cygnet._core._kernels cimport CYG_GROUP, CYG_KEY_BLOCK, CYG_KV_F32, cyg_attention, cyg_product
from cygnet._core._linear cimport Linear, Rows, needs_codes
from cygnet._core._pass cimport (FEW_ROWS, STAGE_ATTENTION, STAGE_QKV, Bias, Norm, Pass, Rope, View, normalize, prepare, product, stage_begin,
                                 stage_end)
from cygnet._core._threads cimport team_claim, team_finish

cdef int64_t QUERY_TILE = 16  # query tokens of a share


cdef void attention_in(Pass *p, int thread, const Attention *a, const Rows *rows) noexcept nogil:
    """Queries, keys and values of all rows, side by side in p.qkv."""
    product(p, thread, STAGE_QKV, a.qkv, a.qkv_parts, rows, 1.0, 0, p.qkv, a.qkv_width)


cdef Rows attention_out_rows(Pass *p, int thread, const Attention *a) noexcept nogil:
    """The result of attention_mix as rows for the output projection."""
    return prepare(p, thread, NULL, p.mixed, a.heads * a.head_dim, NULL, needs_codes(a.output, 1), False)


cdef void attention_mix(Pass *p, int thread, const Attention *a) noexcept nogil:
    """softmax(q k^T) v of every head, from p.qkv into p.mixed."""
    cdef int64_t began = stage_begin(p, thread), shares, share, total, head, first, i
    cdef const View *view
    cdef bint fused = p.single and a.qk_norm != 2 and not a.cross and a.disentangled == NULL
    if not fused:
        _positions_stage(p, thread, a)
    if a.disentangled != NULL:
        _disentangled_stage(p, thread, a)
    if fused:
        # One token a sequence: its key head rotates, stores and attends in one share.
        total = p.view_count * a.kv_heads
    else:
        total = 0
        for i in range(p.view_count):
            total += (p.views[i].count + QUERY_TILE - 1) // QUERY_TILE * a.kv_heads
    share = team_claim(p.members, thread, 1, total)
    if fused:
        while share < total:
            view, head = &p.views[share // a.kv_heads], share % a.kv_heads
            _place(p, a, view, view.row, head)
            _attend(p, thread, a, view, head, 0, 1)
            share = team_claim(p.members, thread, 1, total)
    else:
        first = 0
        for i in range(p.view_count):
            view = &p.views[i]
            shares = (view.count + QUERY_TILE - 1) // QUERY_TILE * a.kv_heads
            while share < first + shares:
                # Late tiles of a causal sequence see the most keys: they come first.
                head = (share - first) % a.kv_heads
                _attend(p, thread, a, view, head, (shares // a.kv_heads - 1 - (share - first) // a.kv_heads) * QUERY_TILE, QUERY_TILE)
                share = team_claim(p.members, thread, 1, total)
            first += shares
    team_finish(p.members, thread, total)
    stage_end(p, thread, STAGE_ATTENTION, began)


cdef inline void _clip(float *x, int64_t n, float limit) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        x[i] = min(max(x[i], -limit), limit)


cdef inline void _norm_heads(Pass *p, const Norm *norm, int64_t stride, float *x, int64_t first, int64_t heads, int64_t dim) noexcept nogil:
    """The norm of each head by itself; heads count from `first` for weights of their own."""
    cdef Norm own = norm[0]
    cdef int64_t head
    if stride == 0:
        normalize(p, norm, x, dim, heads, dim, x, dim)
        return
    for head in range(heads):
        own.weight = norm.weight + (first + head) * stride if norm.weight != NULL else NULL
        own.bias = norm.bias + (first + head) * stride if norm.bias != NULL else NULL
        normalize(p, &own, x + head * dim, dim, 1, dim, x + head * dim, dim)


cdef inline void _rotate(Pass *p, const Attention *a, const View *view, int64_t position, float *x, int64_t heads) noexcept nogil:
    cdef const Rope *rope
    if a.rope >= 0:
        rope = &p.ropes[view.ropes + a.rope]
        p.table.rotate(x, heads, a.head_dim, rope.half, rope.interleaved, rope.cos + position * rope.half, rope.sin + position * rope.half)


cdef inline void _place(Pass *p, const Attention *a, const View *view, int64_t row, int64_t head) noexcept nogil:
    """One row's queries of a key head made ready in place, its key and value written to memory."""
    cdef int64_t dim = a.head_dim, group = a.heads // a.kv_heads, position = view.start + row - view.row
    cdef float *query = p.qkv + row * a.qkv_width + head * group * dim
    cdef float *key = p.qkv + row * a.qkv_width + (a.heads + head) * dim
    cdef float *value = key + a.kv_heads * dim
    cdef int64_t offset = a.kv_offset + head * 2 * dim * CYG_KEY_BLOCK
    cdef size_t size = 4 if p.kv_kind == CYG_KV_F32 else 2
    cdef char *block
    if a.clip > 0:
        _clip(query, group * dim, a.clip)
        _clip(key, dim, a.clip)
        _clip(value, dim, a.clip)
    if a.qk_norm == 1 and not a.qk_norm_last:
        _norm_heads(p, &a.query_norm, a.qk_norm_stride, query, head * group, group, dim)
        _norm_heads(p, &a.key_norm, a.qk_norm_stride, key, head, 1, dim)
    _rotate(p, a, view, position, query, group)
    _rotate(p, a, view, position, key, 1)
    if a.qk_norm == 1 and a.qk_norm_last:
        _norm_heads(p, &a.query_norm, a.qk_norm_stride, query, head * group, group, dim)
        _norm_heads(p, &a.key_norm, a.qk_norm_stride, key, head, 1, dim)
    block = <char *>view.blocks[position // CYG_KEY_BLOCK] + offset * size
    p.table.store_kv(p.kv_kind, key, value, a.head_dim, <int>(position % CYG_KEY_BLOCK), block, block + dim * CYG_KEY_BLOCK * size)


cdef inline int64_t _blocks_of(const View *view) noexcept nogil:
    """Key blocks that a view's new tokens fall into."""
    return (view.start + view.count - 1) // CYG_KEY_BLOCK - view.start // CYG_KEY_BLOCK + 1


cdef void _positions_stage(Pass *p, int thread, const Attention *a) noexcept nogil:
    """Every row's queries and keys normed and rotated, keys and values stored; queries only in cross-attention.

    A unit is one key block of a sequence: members that wrote neighbouring keys of a block would take its cache lines from each other.
    """
    cdef const View *view
    cdef int64_t i, unit, total = 0, first = 0, row, last, block
    for i in range(p.view_count):
        total += _blocks_of(&p.views[i])
    unit = team_claim(p.members, thread, 1, total)
    for i in range(p.view_count):
        view = &p.views[i]
        while unit < first + _blocks_of(view):
            block = view.start // CYG_KEY_BLOCK + unit - first
            row = view.row + max(block * CYG_KEY_BLOCK - view.start, 0)
            last = view.row + min((block + 1) * CYG_KEY_BLOCK - view.start, view.count)
            while row < last:
                _position_row(p, a, view, row)
                row += 1
            unit = team_claim(p.members, thread, 1, total)
        first += _blocks_of(view)
    team_finish(p.members, thread, total)


cdef void _position_row(Pass *p, const Attention *a, const View *view, int64_t row) noexcept nogil:
    cdef int64_t head, dim = a.head_dim
    cdef float *query = p.qkv + row * a.qkv_width
    if a.qk_norm == 2:
        normalize(p, &a.query_norm, query, 0, 1, a.heads * dim, query, 0)
        if not a.cross:
            normalize(p, &a.key_norm, query + a.heads * dim, 0, 1, a.kv_heads * dim, query + a.heads * dim, 0)
    if a.cross and a.qk_norm == 1:
        _norm_heads(p, &a.query_norm, a.qk_norm_stride, query, 0, a.heads, dim)
    if not a.cross:
        for head in range(a.kv_heads):
            _place(p, a, view, row, head)


cdef void _attend(Pass *p, int thread, const Attention *a, const View *view, int64_t head, int64_t tile, int64_t count) noexcept nogil:
    """The kernel on query tokens tile .. tile + count - 1 of a view and the query heads that read key head `head`."""
    cdef cyg_attention share
    cdef int64_t dim = a.head_dim, group = a.heads // a.kv_heads, row = view.row + tile
    cdef int64_t offset = a.kv_offset + head * 2 * dim * CYG_KEY_BLOCK
    cdef const Bias *bias
    share.kv_kind = p.kv_kind
    share.blocks = <const void *const *>(view.source_blocks if a.cross else view.blocks)
    share.k_offset, share.v_offset = offset, offset + dim * CYG_KEY_BLOCK
    share.keys = view.source_keys if a.cross else view.start + view.count
    share.first_query = view.start + tile
    share.tokens = min(count, view.count - tile)
    share.heads, share.head_dim = <int>group, a.head_dim
    share.q = p.qkv + row * a.qkv_width + head * group * dim
    share.q_token_stride, share.q_head_stride = a.qkv_width, dim
    share.out = p.mixed + row * a.heads * dim + head * group * dim
    share.out_token_stride, share.out_head_stride = a.heads * dim, dim
    share.scale, share.softcap, share.causal, share.window = a.scale, a.softcap, a.causal, a.window
    share.relative = share.key_bias = share.bias = NULL
    share.relative_stride = share.key_bias_stride = share.bias_head_stride = share.bias_token_stride = 0
    if a.bias >= 0:
        bias = &p.biases[a.bias]
        if bias.by_distance != NULL:
            share.relative, share.relative_stride = bias.by_distance + head * group * bias.distance_stride, bias.distance_stride
        if bias.by_key != NULL:
            share.key_bias, share.key_bias_stride = bias.by_key + head * group * bias.key_stride, bias.key_stride
    if a.disentangled != NULL:
        _disentangled_bias(p, thread, a, view, head, tile, &share)
    p.table.attention(&share)


cdef void _all_panels(Pass *p, const Linear *weight, const float *x, int64_t ldx, int64_t m, float *y, int64_t ldy) noexcept nogil:
    cdef cyg_product share
    share.weight, share.n, share.k, share.bias = weight.data, weight.n, weight.k, NULL
    share.first_panel, share.last_panel, share.m = 0, weight.panels, m
    share.x, share.ldx, share.alpha, share.accumulate = x, ldx, 1.0, 0
    share.y, share.ldy = y, ldy
    p.table.product[<int>weight.kind](&share)


cdef void _disentangled_stage(Pass *p, int thread, const Attention *a) noexcept nogil:
    """Position-to-content: every key of every head times every relative position, into p.positional (heads, T, rows)."""
    cdef const Disentangled *d = a.disentangled
    cdef int64_t share, head, row, blocks = (p.tokens + QUERY_TILE - 1) // QUERY_TILE
    if d.position_query == NULL:
        return
    while True:
        share = team_claim(p.members, thread, 1, blocks * a.heads)
        if share >= blocks * a.heads:
            break
        head, row = share // blocks, share % blocks * QUERY_TILE
        _all_panels(p, &d.position_query[head], p.qkv + row * a.qkv_width + (a.heads + head) * a.head_dim, a.qkv_width,
                    min(QUERY_TILE, p.tokens - row), p.positional + (head * p.tokens + row) * d.rows, d.rows)
    team_finish(p.members, thread, blocks * a.heads)


cdef void _disentangled_bias(Pass *p, int thread, const Attention *a, const View *view, int64_t head, int64_t tile, cyg_attention *share) noexcept nogil:
    """Both position terms of a tile as a score bias in the member's scratch: (tokens, keys), then room for (tokens, rows)."""
    cdef const Disentangled *d = a.disentangled
    cdef float *bias = <float *>(p.scratch + thread * p.scratch_bytes)
    cdef float *content = bias + QUERY_TILE * view.count
    cdef const float *positional
    cdef int64_t i, j, query
    cdef float score
    if d.position_key != NULL:
        _all_panels(p, &d.position_key[head], share.q, share.q_token_stride, share.tokens, content, d.rows)
    for i in range(share.tokens):
        query = tile + i
        for j in range(view.count):
            score = 0
            if d.position_key != NULL:
                score = content[i * d.rows + d.row_of[query - j]]
            if d.position_query != NULL:
                positional = p.positional + (head * p.tokens + view.row + j) * d.rows
                score += positional[d.row_of[query - j]]
            bias[i * view.count + j] = a.scale * score
    share.bias, share.bias_token_stride, share.bias_head_stride = bias, view.count, 0
