"""The attention sublayer: projections, positions and key/value memory, and the fused kernel. Its shares are (sequence, query tile, key head), or, where a few
tokens look at many keys, (sequence, chunk of keys, key head).

Keys and values are always read from blocks, cached or not, in blocks and chunks counted from the start of the sequence: that is why a token's result has
the same bits whether its prefix came in the same pass, in pieces, or long ago, and however the work was shared.
"""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

from cygnet._core._kernels cimport CYG_ATTENTION_ROWS, CYG_GROUP, CYG_KEY_BLOCK, CYG_KEY_CHUNK, CYG_KV_F32, cyg_attention, cyg_product
from cygnet._core._linear cimport Linear, Rows, basis_of
from cygnet._core._pass cimport (FEW_ROWS, STAGE_ATTENTION, STAGE_QKV, Bias, Norm, Pass, Rope, View, normalize, prepare, product, stage_begin,
                                 stage_end)
from cygnet._core._threads cimport team_claim, team_finish, team_last

cdef int64_t QUERY_TILE = 16  # query tokens of a share, at least


cdef void attention_in(Pass *p, int thread, const Attention *a, const Rows *rows) noexcept nogil:
    """Queries, keys and values of all rows, side by side in p.qkv."""
    product(p, thread, STAGE_QKV, a.qkv, a.qkv_parts, rows, 1.0, 0, p.qkv, a.qkv_width)


cdef Rows attention_out_rows(Pass *p, int thread, const Attention *a) noexcept nogil:
    """The result of attention_mix as rows for the output projection."""
    return prepare(p, thread, NULL, p.mixed, a.heads * a.head_dim, NULL, basis_of(a.output, 1), False)


cdef void attention_mix(Pass *p, int thread, const Attention *a) noexcept nogil:
    """softmax(q k^T) v of every head, from p.qkv into p.mixed."""
    cdef int64_t began = stage_begin(p, thread)
    cdef bint split = p.parts != NULL and a.disentangled == NULL
    cdef bint fused = split and p.single and a.qk_norm != 2 and not a.cross
    if not fused and not (a.cross and a.qk_norm == 0):
        _positions_stage(p, thread, a)
    if a.disentangled != NULL:
        _disentangled_stage(p, thread, a)
    if split:
        _chunks_stage(p, thread, a, fused)
    else:
        _tiles_stage(p, thread, a)
    stage_end(p, thread, STAGE_ATTENTION, began)


cdef void _tiles_stage(Pass *p, int thread, const Attention *a) noexcept nogil:
    """Shares of (sequence, query tile, key head), each with all of its keys."""
    cdef int64_t share, shares, total = 0, head, first = 0, i, tile = QUERY_TILE
    cdef const View *view
    if a.disentangled == NULL:  # whose scratch holds no more
        tile = max(tile, CYG_ATTENTION_ROWS * a.kv_heads // a.heads)
    for i in range(p.view_count):
        total += (p.views[i].count + tile - 1) // tile * a.kv_heads
    share = team_claim(p.members, thread, 1, total)
    for i in range(p.view_count):
        view = &p.views[i]
        shares = (view.count + tile - 1) // tile * a.kv_heads
        while share < first + shares:
            # Late tiles of a causal sequence see the most keys: they come first.
            head = (share - first) % a.kv_heads
            _attend(p, thread, a, view, head, (shares // a.kv_heads - 1 - (share - first) // a.kv_heads) * tile, tile)
            share = team_claim(p.members, thread, 1, total)
        first += shares
    team_finish(p.members, thread, total)


cdef inline int64_t _keys(const Attention *a, const View *view) noexcept nogil:
    return view.source_keys if a.cross else view.start + view.count


cdef inline int64_t _first_chunk(const Attention *a, const View *view) noexcept nogil:
    """The first chunk that a window leaves in sight."""
    return max(view.start - a.window + 1, 0) // CYG_KEY_CHUNK if a.window > 0 else 0


cdef inline int64_t _chunks(const Attention *a, const View *view) noexcept nogil:
    """Chunks of keys in sight of a view; one where there are no keys, which then gives zeros."""
    return max((_keys(a, view) + CYG_KEY_CHUNK - 1) // CYG_KEY_CHUNK - _first_chunk(a, view), 1)


cdef void _chunks_stage(Pass *p, int thread, const Attention *a, bint fused) noexcept nogil:
    """Shares of (sequence, chunk of keys, key head): few query tokens over many keys."""
    cdef int64_t unit, units, total = 0, first = 0, i
    for i in range(p.view_count):
        total += _chunks(a, &p.views[i]) * a.kv_heads
    unit = team_claim(p.members, thread, 1, total)
    for i in range(p.view_count):
        units = _chunks(a, &p.views[i]) * a.kv_heads
        while unit < first + units:
            _attend_chunk(p, thread, a, i, (unit - first) % a.kv_heads, (unit - first) // a.kv_heads, fused)
            unit = team_claim(p.members, thread, 1, total)
        first += units
    team_finish(p.members, thread, total)


cdef void _attend_chunk(Pass *p, int thread, const Attention *a, int64_t which, int64_t head, int64_t chunk, bint fused) noexcept nogil:
    """One chunk of a key head, counted from the first in sight; `fused`: with what _positions_stage would have done. The last to be done joins all."""
    cdef cyg_attention share
    cdef const View *view = &p.views[which]
    cdef int64_t chunks = _chunks(a, view), dim = a.head_dim, group = a.heads // a.kv_heads, width = group * view.count * (dim + 2)
    cdef float *parts = p.parts + view.part * a.heads * (dim + 2) + head * chunks * width
    cdef float *query
    _describe(p, thread, a, view, head, 0, view.count, &share)
    if fused:
        # Each share of a head needs the rotated query: it makes its own.
        query = _room(p, thread)
        memcpy(query, share.q, group * dim * sizeof(float))
        _place_query(p, a, view, view.row, head, query)
        share.q = query
        if chunk + 1 == chunks:
            _place_key(p, a, view, view.row, head)
    if chunks == 1:
        p.table.attention(&share)
        return
    p.table.attention_part(&share, _first_chunk(a, view) + chunk, parts + chunk * width)
    if team_last(&p.arrived[which * a.kv_heads + head], <int>chunks):
        p.table.attention_join(&share, chunks, parts)


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


cdef inline void _place_query(Pass *p, const Attention *a, const View *view, int64_t row, int64_t head, float *query) noexcept nogil:
    """One row's queries of a key head made ready in place."""
    cdef int64_t dim = a.head_dim, group = a.heads // a.kv_heads
    if a.clip > 0:
        _clip(query, group * dim, a.clip)
    if a.qk_norm == 1 and not a.qk_norm_last:
        _norm_heads(p, &a.query_norm, a.qk_norm_stride, query, head * group, group, dim)
    _rotate(p, a, view, view.start + row - view.row, query, group)
    if a.qk_norm == 1 and a.qk_norm_last:
        _norm_heads(p, &a.query_norm, a.qk_norm_stride, query, head * group, group, dim)


cdef inline void _place_key(Pass *p, const Attention *a, const View *view, int64_t row, int64_t head) noexcept nogil:
    """One row's key and value of a head made ready and written to memory."""
    cdef int64_t dim = a.head_dim, position = view.start + row - view.row
    cdef float *key = p.qkv + row * a.qkv_width + (a.heads + head) * dim
    cdef float *value = key + a.kv_heads * dim
    cdef int64_t offset = a.kv_offset + head * 2 * dim * CYG_KEY_BLOCK
    cdef size_t size = 4 if p.kv_kind == CYG_KV_F32 else 2
    cdef char *block
    if a.clip > 0:
        _clip(key, dim, a.clip)
        _clip(value, dim, a.clip)
    if a.qk_norm == 1 and not a.qk_norm_last:
        _norm_heads(p, &a.key_norm, a.qk_norm_stride, key, head, 1, dim)
    _rotate(p, a, view, position, key, 1)
    if a.qk_norm == 1 and a.qk_norm_last:
        _norm_heads(p, &a.key_norm, a.qk_norm_stride, key, head, 1, dim)
    block = <char *>view.blocks[position // CYG_KEY_BLOCK] + offset * size
    if p.table.store_kv(p.kv_kind, key, value, a.head_dim, <int>(position % CYG_KEY_BLOCK), block, block + dim * CYG_KEY_BLOCK * size):
        p.beyond[0] = 1


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
            _place_query(p, a, view, row, head, query + head * (a.heads // a.kv_heads) * dim)
            _place_key(p, a, view, row, head)


cdef inline float *_room(Pass *p, int thread) noexcept nogil:
    """Attention's own piece of the member's scratch."""
    return <float *>(p.scratch + thread * p.scratch_bytes + p.room_offset)


cdef void _attend(Pass *p, int thread, const Attention *a, const View *view, int64_t head, int64_t tile, int64_t count) noexcept nogil:
    """The kernel on query tokens tile .. tile + count - 1 of a view and the query heads that read key head `head`."""
    cdef cyg_attention share
    _describe(p, thread, a, view, head, tile, count, &share)
    if a.disentangled != NULL:
        _disentangled_bias(p, thread, a, view, head, tile, &share)
    p.table.attention(&share)


cdef void _describe(Pass *p, int thread, const Attention *a, const View *view, int64_t head, int64_t tile, int64_t count,
                    cyg_attention *share) noexcept nogil:
    """What the kernel has to know of these tokens and heads."""
    cdef int64_t dim = a.head_dim, group = a.heads // a.kv_heads, row = view.row + tile
    cdef int64_t offset = a.kv_offset + head * 2 * dim * CYG_KEY_BLOCK
    cdef const Bias *bias
    share.kv_kind = p.kv_kind
    share.blocks = <const void *const *>(view.source_blocks if a.cross else view.blocks)
    share.k_offset, share.v_offset = offset, offset + dim * CYG_KEY_BLOCK
    share.keys = _keys(a, view)
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
    share.parts = _room(p, thread)


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
