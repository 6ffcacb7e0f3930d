/* Attention of a few query rows over blocks of keys and values with an online softmax (Milakov and Gimelshein 2018; Dao et al. 2022).

   A row is one query token and head. Rows are worked in groups that stay in the first cache together with a block, and in tiles whose running sums
   stay in registers. A row uses exactly its own allowed keys first..last of each block, in ascending order, and nothing of the other rows: whether
   it sits alone or in a tile, its bits are the same. Every chunk of CYG_KEY_CHUNK keys has a softmax of its own that starts from nothing, and chunks
   are joined in ascending order: whether one call sees all of them or each is another thread's share, the bits are the same. Unnormalised results are
   kept in `out`, which may not overlap the queries. */
enum { GROUP_ROWS = CYG_ATTENTION_ROWS, CHUNK_BLOCKS = CYG_KEY_CHUNK / CYG_KEY_BLOCK };
#if VF_SUMS >= 16
enum { TILE_ROWS = 8 };
#define LARGEST_TILE(call)                                             \
    case 16: call(CYG_KV_F32, 8); break;                               \
    case 17: call(CYG_KV_F16, 8); break;
#else
enum { TILE_ROWS = 4 };
#define LARGEST_TILE(call)
#endif

struct attention_row {
    const float *q;
    float *out;                              /* of the chunks that are joined */
    float *part;                             /* of the current chunk; may be `out` where there is only one */
    int64_t first, last;                     /* allowed keys */
    const float *relative, *key_bias, *bias; /* element j is that of key j; NULL where absent */
    float max, sum;                          /* of the current chunk */
    float joined_max, joined_sum;
};

/* A tile at one block. */
struct attention_tile {
    struct attention_row *rows;
    const void *k, *v;
    int64_t head_dim;
    int first[TILE_ROWS], last[TILE_ROWS]; /* allowed slots */
    int any_first, any_last;               /* slots that some row may see */
    int shared_first, shared_last;         /* slots that all rows may see */
    float rescale[TILE_ROWS];              /* what the sums so far are multiplied by */
    _Alignas(64) float scores[TILE_ROWS][CYG_KEY_BLOCK];
};

CYG_INLINE vf kv_get(enum cyg_kv_kind kind, const void *base, int64_t index, int64_t n) {
    return kind == CYG_KV_F32 ? vf_get((const float *)base + index, n) : vf_get_f16((const uint16_t *)base + index, n);
}

/* The largest power of two of at most `limit` columns that `rows` rows of running sums leave room for. */
#define TILE_COLUMNS(rows, limit) (8 <= (limit) && 8 * (rows) <= VF_SUMS ? 8 : 4 <= (limit) && 4 * (rows) <= VF_SUMS ? 4 : 2)

/* scores = q k^T for all slots of the block. */
CYG_INLINE void score_tile(enum cyg_kv_kind kind, const int rows, struct attention_tile *t) {
    enum { BLOCK_VECTORS = CYG_KEY_BLOCK / VF };
    const int columns = TILE_COLUMNS(rows, BLOCK_VECTORS);
    const float *q[TILE_ROWS];
    for (int r = 0; r < rows; r++) q[r] = t->rows[r].q;
    for (int slot = 0; slot < CYG_KEY_BLOCK; slot += columns * VF) {
        vf sum[TILE_ROWS][8];
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) sum[r][c] = vf_zero();
        for (int64_t d = 0; d < t->head_dim; d++) {
            vf k[8];
            for (int c = 0; c < columns; c++) k[c] = kv_get(kind, t->k, d * CYG_KEY_BLOCK + slot + c * VF, VF);
            for (int r = 0; r < rows; r++) {
                vf x = vf_set1(q[r][d]);
                for (int c = 0; c < columns; c++) sum[r][c] = vf_fma(x, k[c], sum[r][c]);
            }
        }
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) vf_store(&t->scores[r][slot + c * VF], sum[r][c]);
    }
}

/* One slot of value_columns: sum += probability * value, for the rows that may see it. */
CYG_INLINE void value_slot(enum cyg_kv_kind kind, const int rows, const int columns, const struct attention_tile *t, int j, int edge, int64_t d, int64_t n,
                           vf sum[TILE_ROWS][8]) {
    vf v[8];
    for (int c = 0; c < columns; c++) v[c] = kv_get(kind, t->v, j * t->head_dim + d + c * VF, n);
    for (int r = 0; r < rows; r++) {
        if (edge && (j < t->first[r] || j >= t->last[r])) continue;
        vf p = vf_set1(t->scores[r][j]);
        for (int c = 0; c < columns; c++) sum[r][c] = vf_fma(p, v[c], sum[r][c]);
    }
}

/* part = part * rescale + sum over slots of probability * value, for `columns` vectors of features from d on; the last has n lanes. Rows of a tile differ
   in their slots at the edges of the causal or windowed range only. A slot that a row may not see is never multiplied: a NaN there cannot leak. */
CYG_INLINE void value_columns(enum cyg_kv_kind kind, const int rows, const int columns, const struct attention_tile *t, int64_t d, int64_t n) {
    vf sum[TILE_ROWS][8];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) sum[r][c] = vf_mul(vf_get(t->rows[r].part + d + c * VF, n), vf_set1(t->rescale[r]));
    for (int j = t->any_first; j < t->shared_first; j++) value_slot(kind, rows, columns, t, j, 1, d, n, sum);
    for (int j = t->shared_first; j < t->shared_last; j++) value_slot(kind, rows, columns, t, j, 0, d, n, sum);
    for (int j = t->shared_last; j < t->any_last; j++) value_slot(kind, rows, columns, t, j, 1, d, n, sum);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) vf_put(t->rows[r].part + d + c * VF, sum[r][c], n);
}

CYG_INLINE void value_tile(enum cyg_kv_kind kind, const int rows, const struct attention_tile *t) {
    int64_t d = 0, end = t->head_dim;
    if (TILE_COLUMNS(rows, 8) == 8)
        for (; d + 8 * VF <= end; d += 8 * VF) value_columns(kind, rows, 8, t, d, VF);
    if (TILE_COLUMNS(rows, 8) >= 4)
        for (; d + 4 * VF <= end; d += 4 * VF) value_columns(kind, rows, 4, t, d, VF);
    for (; d + 2 * VF <= end; d += 2 * VF) value_columns(kind, rows, 2, t, d, VF);
    for (; d + VF <= end; d += VF) value_columns(kind, rows, 1, t, d, VF);
    if (d < end) value_columns(kind, rows, 1, t, d, end - d);
}

/* One body for each number of rows and type of element. */
#define EACH_TILE(kind, rows, call)                                    \
    switch (2 * (rows) + (kind == CYG_KV_F16)) {                       \
    case 2: call(CYG_KV_F32, 1); break;                                \
    case 3: call(CYG_KV_F16, 1); break;                                \
    case 4: call(CYG_KV_F32, 2); break;                                \
    case 5: call(CYG_KV_F16, 2); break;                                \
    case 6: call(CYG_KV_F32, 3); break;                                \
    case 7: call(CYG_KV_F16, 3); break;                                \
    case 8: call(CYG_KV_F32, 4); break;                                \
    case 9: call(CYG_KV_F16, 4); break;                                \
    LARGEST_TILE(call)                                                 \
    }

/* The largest tile that `count` rows fill: 1, 2, 3, 4 or, with registers enough, 8. */
static int tile_rows(int count) {
    return count >= TILE_ROWS ? TILE_ROWS : count < 4 ? count : 4;
}

static void tile_scores(enum cyg_kv_kind kind, int rows, struct attention_tile *t) {
#define CALL(KIND, ROWS) score_tile(KIND, ROWS, t)
    EACH_TILE(kind, rows, CALL)
#undef CALL
}

static void tile_values(enum cyg_kv_kind kind, int rows, const struct attention_tile *t) {
#define CALL(KIND, ROWS) value_tile(KIND, ROWS, t)
    EACH_TILE(kind, rows, CALL)
#undef CALL
}

static void add_slots(float *scores, const float *terms, int first, int last) {
    for (int j = first; j < last; j++) scores[j] += terms[j];
}

/* Slots outside first..last get -infinity. */
CYG_INLINE void hide_slots(float *scores, int first, int last) {
    static const float slots[CYG_KEY_BLOCK] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                               16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    vf hidden = vf_set1(-INFINITY), from = vf_set1((float)first), to = vf_set1((float)last);
    for (int j = 0; j < CYG_KEY_BLOCK; j += VF) {
        vf slot = vf_load(slots + j), s = vf_select(vf_lt(slot, to), vf_load(scores + j), hidden);
        vf_store(scores + j, vf_select(vf_lt(slot, from), hidden, s));
    }
}

/* Scores of one row at one block to probabilities relative to the row's new maximum; returns their sum. `exponent` is the logarithm of the factor
   that brings the sums so far to that maximum. */
static float row_probabilities(const struct cyg_attention *a, struct attention_row *row, float *scores, int first, int last, int64_t key, float *exponent) {
    vf scale = vf_set1(a->scale), cap = vf_set1(a->softcap), inverse = vf_set1(a->softcap > 0 ? 1 / a->softcap : 0);
    for (int j = 0; j < CYG_KEY_BLOCK; j += VF) {
        vf s = vf_mul(vf_load(scores + j), scale);
        vf_store(scores + j, a->softcap > 0 ? capped(s, cap, inverse) : s);
    }
    if (row->relative) add_slots(scores, row->relative + key, first, last);
    if (row->key_bias) add_slots(scores, row->key_bias + key, first, last);
    if (row->bias) add_slots(scores, row->bias + key, first, last);
    if (first > 0 || last < CYG_KEY_BLOCK) hide_slots(scores, first, last);

    vf m = vf_set1(-INFINITY), sum = vf_zero();
    for (int j = 0; j < CYG_KEY_BLOCK; j += VF) m = vf_max(vf_load(scores + j), m);
    float largest = vf_reduce_max(m), before = row->max;
    row->max = largest > before ? largest : before;
    /* While every score is -infinity any finite shift will do; a NaN, which no maximum keeps, shows in the sum. */
    float shift = row->max == -INFINITY ? 0 : row->max;
    for (int j = 0; j < CYG_KEY_BLOCK; j += VF) {
        vf p = vf_exp(vf_sub(vf_load(scores + j), vf_set1(shift)));
        vf_store(scores + j, p);
        sum = vf_add(sum, p);
    }
    *exponent = before - shift;
    return vf_reduce_add(sum);
}

static int slot_of(int64_t key, int64_t block_start) {
    int64_t slot = key - block_start;
    return slot < 0 ? 0 : slot > CYG_KEY_BLOCK ? CYG_KEY_BLOCK : (int)slot;
}

/* One tile at one block. A row without an allowed slot here keeps its sums bit for bit: they are multiplied by one. */
static void attend_tile(const struct cyg_attention *a, struct attention_row *rows, int count, int64_t block) {
    struct attention_tile t;
    int64_t key = block * CYG_KEY_BLOCK;
    t.any_first = t.shared_last = CYG_KEY_BLOCK;
    t.any_last = t.shared_first = 0;
    for (int r = 0; r < count; r++) {
        int first = t.first[r] = slot_of(rows[r].first, key), last = t.last[r] = slot_of(rows[r].last, key);
        t.any_first = first < t.any_first ? first : t.any_first;
        t.any_last = last > t.any_last ? last : t.any_last;
        t.shared_first = first > t.shared_first ? first : t.shared_first;
        t.shared_last = last < t.shared_last ? last : t.shared_last;
    }
    if (t.any_first >= t.any_last) return;
    if (t.shared_first >= t.shared_last) t.shared_first = t.shared_last = t.any_last;
    size_t size = a->kv_kind == CYG_KV_F32 ? sizeof(float) : sizeof(uint16_t);
    t.rows = rows;
    t.head_dim = a->head_dim;
    t.k = (const char *)a->blocks[block] + (size_t)a->k_offset * size;
    t.v = (const char *)a->blocks[block] + (size_t)a->v_offset * size;
    tile_scores(a->kv_kind, count, &t);

    enum { LANES = TILE_ROWS < VF ? VF : TILE_ROWS };
    float exponent[LANES] = {0}, factor[LANES], sum[TILE_ROWS] = {0};
    for (int r = 0; r < count; r++)
        if (t.first[r] < t.last[r]) sum[r] = row_probabilities(a, rows + r, t.scores[r], t.first[r], t.last[r], key, exponent + r);
    for (int r = 0; r < LANES; r += VF) vf_store(factor + r, vf_exp(vf_load(exponent + r)));
    for (int r = 0; r < count; r++) {
        t.rescale[r] = factor[r];
        rows[r].sum = rows[r].sum * factor[r] + sum[r];
    }
    tile_values(a->kv_kind, count, &t);
}

static void start_row(const struct cyg_attention *a, struct attention_row *row, int64_t token, int64_t head) {
    int64_t position = a->first_query + token;
    int64_t last = a->causal ? position + 1 : a->window > 0 ? position + a->window : a->keys;
    row->q = a->q + token * a->q_token_stride + head * a->q_head_stride;
    row->out = row->part = a->out + token * a->out_token_stride + head * a->out_head_stride;
    row->last = last < a->keys ? last : a->keys;
    row->first = a->window > 0 && position - a->window + 1 > 0 ? position - a->window + 1 : 0;
    row->relative = a->relative ? a->relative + head * a->relative_stride - position : NULL;
    row->key_bias = a->key_bias ? a->key_bias + head * a->key_bias_stride : NULL;
    row->bias = a->bias ? a->bias + head * a->bias_head_stride + token * a->bias_token_stride : NULL;
    row->joined_sum = 0;
}

/* Rows `start` .. of a share, at most GROUP_ROWS; a row counts heads first. */
static int start_rows(const struct cyg_attention *a, struct attention_row *rows, int64_t start) {
    int64_t total = a->tokens * a->heads;
    int count = total - start < GROUP_ROWS ? (int)(total - start) : GROUP_ROWS;
    for (int r = 0; r < count; r++) start_row(a, rows + r, (start + r) / a->heads, (start + r) % a->heads);
    return count;
}

/* Asks for a block's keys and values while the block before it is worked on: blocks lie far apart, where no hardware foresees them. */
static void expect_block(const struct cyg_attention *a, int64_t block) {
    size_t size = a->kv_kind == CYG_KV_F32 ? sizeof(float) : sizeof(uint16_t), bytes = (size_t)a->head_dim * CYG_KEY_BLOCK * size;
    const char *k = (const char *)a->blocks[block] + (size_t)a->k_offset * size, *v = (const char *)a->blocks[block] + (size_t)a->v_offset * size;
    for (size_t i = 0; i < bytes; i += 64) CYG_EXPECT(k + i);
    for (size_t i = 0; i < bytes; i += 64) CYG_EXPECT(v + i);
}

/* All rows at one chunk, into their parts. The allowed range moves on with the token. */
static void attend_chunk(const struct cyg_attention *a, struct attention_row *rows, int count, int64_t chunk) {
    int64_t block = rows[0].first / CYG_KEY_BLOCK, end = (rows[count - 1].last + CYG_KEY_BLOCK - 1) / CYG_KEY_BLOCK;
    if (block < chunk * CHUNK_BLOCKS) block = chunk * CHUNK_BLOCKS;
    if (end > (chunk + 1) * CHUNK_BLOCKS) end = (chunk + 1) * CHUNK_BLOCKS;
    for (int r = 0; r < count; r++) {
        rows[r].max = -INFINITY;
        rows[r].sum = 0;
        memset(rows[r].part, 0, (size_t)a->head_dim * sizeof(float));
    }
    for (; block < end; block++) {
        if (block + 1 < end) expect_block(a, block + 1);
        for (int r = 0; r < count; r += tile_rows(count - r)) attend_tile(a, rows + r, tile_rows(count - r), block);
    }
}

/* Adds a row's part to what is joined. */
static void join_part(struct attention_row *row, int64_t d) {
    if (row->sum == 0) return; /* no key allowed, or every score -infinity */
    if (row->joined_sum == 0) {
        if (row->out != row->part) memcpy(row->out, row->part, (size_t)d * sizeof(float));
        row->joined_max = row->max;
        row->joined_sum = row->sum;
        return;
    }
    float max = row->max > row->joined_max ? row->max : row->joined_max, factor[VF];
    vf kept = vf_exp(vf_set1(row->joined_max - max)), added = vf_exp(vf_set1(row->max - max));
    for (int64_t i = 0; i < d; i += VF) {
        int64_t n = d - i < VF ? d - i : VF;
        vf_put(row->out + i, vf_fma(vf_get(row->part + i, n), added, vf_mul(vf_get(row->out + i, n), kept)), n);
    }
    vf_store(factor, vf_fma(vf_set1(row->sum), added, vf_mul(vf_set1(row->joined_sum), kept)));
    row->joined_max = max;
    row->joined_sum = factor[0];
}

static void finish_row(const struct attention_row *row, int64_t d) {
    vf factor = vf_set1(1 / row->joined_sum);
    if (row->joined_sum == 0) {
        memset(row->out, 0, (size_t)d * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < d; i += VF) {
        int64_t n = d - i < VF ? d - i : VF;
        vf_put(row->out + i, vf_mul(vf_get(row->out + i, n), factor), n);
    }
}

static void attention(const struct cyg_attention *a) {
    struct attention_row rows[GROUP_ROWS];
    for (int64_t start = 0; start < a->tokens * a->heads; start += GROUP_ROWS) {
        int count = start_rows(a, rows, start);
        int64_t chunk = rows[0].first / CYG_KEY_CHUNK, end = (rows[count - 1].last + CYG_KEY_CHUNK - 1) / CYG_KEY_CHUNK;
        if (end - chunk > 1)
            for (int r = 0; r < count; r++) rows[r].part = a->parts + r * a->head_dim;
        for (; chunk < end; chunk++) {
            attend_chunk(a, rows, count, chunk);
            for (int r = 0; r < count; r++) join_part(rows + r, a->head_dim);
        }
        for (int r = 0; r < count; r++) finish_row(rows + r, a->head_dim);
    }
}

/* A row's part, its maximum and its sum lie side by side. */
static void attention_part(const struct cyg_attention *a, int64_t chunk, float *parts) {
    struct attention_row rows[GROUP_ROWS];
    int64_t width = a->head_dim + 2;
    for (int64_t start = 0; start < a->tokens * a->heads; start += GROUP_ROWS) {
        int count = start_rows(a, rows, start);
        for (int r = 0; r < count; r++) rows[r].part = parts + (start + r) * width;
        attend_chunk(a, rows, count, chunk);
        for (int r = 0; r < count; r++) {
            rows[r].part[a->head_dim] = rows[r].max;
            rows[r].part[a->head_dim + 1] = rows[r].sum;
        }
    }
}

static void attention_join(const struct cyg_attention *a, int64_t chunks, float *parts) {
    struct attention_row rows[GROUP_ROWS];
    int64_t width = a->head_dim + 2, total = a->tokens * a->heads;
    for (int64_t start = 0; start < total; start += GROUP_ROWS) {
        int count = start_rows(a, rows, start);
        for (int r = 0; r < count; r++) {
            for (int64_t chunk = 0; chunk < chunks; chunk++) {
                rows[r].part = parts + (chunk * total + start + r) * width;
                rows[r].max = rows[r].part[a->head_dim];
                rows[r].sum = rows[r].part[a->head_dim + 1];
                join_part(rows + r, a->head_dim);
            }
            finish_row(rows + r, a->head_dim);
        }
    }
}

/* Whether a finite number becomes an infinite float16. */
static int beyond_f16(const float *x, int64_t n) {
    int found = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t magnitude = bits_of_float(x[i]) & 0x7fffffff;
        found |= magnitude >= 0x477ff000 && magnitude < 0x7f800000;
    }
    return found;
}

/* Keys are scattered into the transposed block, values copied into their row. */
static int store_kv(enum cyg_kv_kind kind, const float *key, const float *value, int head_dim, int slot, void *k, void *v) {
    if (kind == CYG_KV_F32) {
        for (int64_t d = 0; d < head_dim; d++) ((float *)k)[d * CYG_KEY_BLOCK + slot] = key[d];
        memcpy((float *)v + (int64_t)slot * head_dim, value, (size_t)head_dim * sizeof(float));
        return 0;
    }
    uint16_t narrow[64];
    for (int64_t start = 0; start < head_dim; start += 64) {
        int64_t n = head_dim - start < 64 ? head_dim - start : 64;
        f32_to_f16(key + start, n, narrow);
        for (int64_t d = 0; d < n; d++) ((uint16_t *)k)[(start + d) * CYG_KEY_BLOCK + slot] = narrow[d];
    }
    f32_to_f16(value, head_dim, (uint16_t *)v + (int64_t)slot * head_dim);
    return beyond_f16(key, head_dim) | beyond_f16(value, head_dim);
}
