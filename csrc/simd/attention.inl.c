/* Attention of a few query rows over blocks of keys and values, a softmax of its own for every chunk of CYG_KEY_CHUNK keys, and chunks joined as an online
   softmax joins them (Milakov and Gimelshein 2018; Dao et al. 2022).

   A row is one query token and head. Rows are worked in tiles whose running sums stay in registers, and in groups of tiles that meet a chunk one after
   another while it is in the cache. A row uses exactly its own allowed keys first..last, in ascending order, and nothing of the other rows: whether it sits
   alone or in a tile, its bits are the same. A chunk starts from nothing and chunks are joined in ascending order: whether one call sees all of them or
   each is another thread's share, the bits are the same too. Unnormalised results are kept in `out`, which may not overlap the queries. */
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

/* A tile at one chunk. Slots count from the chunk's first key. */
struct attention_tile {
    struct attention_row *rows;
    const char *blocks[CHUNK_BLOCKS];        /* this layer and head; those without a key repeat the last */
    size_t v_offset;                         /* bytes from keys to values */
    int64_t head_dim;
    int ahead;                               /* whether this is the first tile to read these blocks */
    int first[TILE_ROWS], last[TILE_ROWS];   /* allowed slots */
    int any_first, any_last;                 /* slots that some row may see */
    int shared_first, shared_last;           /* slots that all rows may see */
    _Alignas(64) float scores[TILE_ROWS][CYG_KEY_CHUNK];
};

CYG_INLINE vf kv_get(enum cyg_kv_kind kind, const void *base, int64_t index, int64_t n) {
    return kind == CYG_KV_F32 ? vf_get((const float *)base + index, n) : vf_get_f16((const uint16_t *)base + index, n);
}

/* Asks for the keys or values of a block some time before they are used: blocks lie far apart, where no hardware foresees them. */
CYG_INLINE void expect(enum cyg_kv_kind kind, const struct attention_tile *t, const char *start) {
    int64_t bytes = t->head_dim * CYG_KEY_BLOCK * (kind == CYG_KV_F32 ? 4 : 2);
    for (int64_t i = 0; i < bytes; i += 64) CYG_EXPECT(start + i);
}

/* The largest power of two of at most `limit` columns that `rows` rows of running sums leave room for. */
#define TILE_COLUMNS(rows, limit) (8 <= (limit) && 8 * (rows) <= VF_SUMS ? 8 : 4 <= (limit) && 4 * (rows) <= VF_SUMS ? 4 : 2)

/* scores = q k^T for the slots from `slot` on, `columns` vectors of them. */
CYG_INLINE void score_columns(enum cyg_kv_kind kind, const int rows, const int columns, struct attention_tile *t, int slot) {
    const char *k[8];
    vf sum[TILE_ROWS][8];
    for (int c = 0; c < columns; c++) {
        int place = slot + c * VF;
        k[c] = t->blocks[place / CYG_KEY_BLOCK] + place % CYG_KEY_BLOCK * (kind == CYG_KV_F32 ? 4 : 2);
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) sum[r][c] = vf_zero();
    for (int64_t d = 0; d < t->head_dim; d++) {
        vf key[8];
        for (int c = 0; c < columns; c++) key[c] = kv_get(kind, k[c], d * CYG_KEY_BLOCK, VF);
        for (int r = 0; r < rows; r++) {
            vf x = vf_set1(t->rows[r].q[d]);
            for (int c = 0; c < columns; c++) sum[r][c] = vf_fma(x, key[c], sum[r][c]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) vf_store(&t->scores[r][slot + c * VF], sum[r][c]);
}

/* Scores of all slots of the blocks that some row may see; they and the values are asked for on the way. */
CYG_INLINE void score_tile(enum cyg_kv_kind kind, const int rows, struct attention_tile *t) {
    const int columns = TILE_COLUMNS(rows, CYG_KEY_CHUNK / VF), step = columns * VF;
    int first = t->any_first / CYG_KEY_BLOCK, end = (t->any_last + CYG_KEY_BLOCK - 1) / CYG_KEY_BLOCK, expected = first;
    for (int slot = first * CYG_KEY_BLOCK / step * step; slot < t->any_last; slot += step) {
        for (; t->ahead && expected < end && expected * CYG_KEY_BLOCK < slot + step; expected++) {
            if (expected + 1 < end) expect(kind, t, t->blocks[expected + 1]);
            expect(kind, t, t->blocks[expected] + t->v_offset);
        }
        score_columns(kind, rows, columns, t, slot);
    }
}

/* Slots from..to, all of the block with these `values`, in value_columns: sum += probability * value; at an `edge` for the rows only that may see them. */
CYG_INLINE void value_slots(enum cyg_kv_kind kind, const int rows, const int columns, const struct attention_tile *t, const char *values, int from, int to,
                            const int edge, int64_t d, int64_t n, vf sum[TILE_ROWS][8]) {
    for (int j = from; j < to; j++) {
        vf v[8];
        for (int c = 0; c < columns; c++) v[c] = kv_get(kind, values, j % CYG_KEY_BLOCK * t->head_dim + d + c * VF, n);
        for (int r = 0; r < rows; r++) {
            if (edge && (j < t->first[r] || j >= t->last[r])) continue;
            vf p = vf_set1(t->scores[r][j]);
            for (int c = 0; c < columns; c++) sum[r][c] = vf_fma(p, v[c], sum[r][c]);
        }
    }
}

CYG_INLINE int within(int x, int least, int most) { return x < least ? least : x > most ? most : x; }

/* part = sum over slots of probability * value, for `columns` vectors of features from d on; the last has n lanes. Rows of a tile differ in their slots at
   the edges of the causal or windowed range only. A slot that a row may not see is never multiplied: a NaN there cannot leak. */
CYG_INLINE void value_columns(enum cyg_kv_kind kind, const int rows, const int columns, const struct attention_tile *t, int64_t d, int64_t n) {
    vf sum[TILE_ROWS][8];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) sum[r][c] = vf_zero();
    for (int from = t->any_first, to; from < t->any_last; from = to) {
        to = within((from / CYG_KEY_BLOCK + 1) * CYG_KEY_BLOCK, from, t->any_last);
        const char *values = t->blocks[from / CYG_KEY_BLOCK] + t->v_offset;
        const int shared = within(t->shared_first, from, to), edge = within(t->shared_last, shared, to);
        value_slots(kind, rows, columns, t, values, from, shared, 1, d, n, sum);
        value_slots(kind, rows, columns, t, values, shared, edge, 0, d, n, sum);
        value_slots(kind, rows, columns, t, values, edge, to, 1, d, n, sum);
    }
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

/* -infinity in the lanes that are outside of first..last; lane 0 is slot j. */
CYG_INLINE vf hide_slots(vf scores, int j, int first, int last) {
    static const float lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    vf slot = vf_add(vf_load(lanes), vf_set1((float)j)), hidden = vf_set1(-INFINITY);
    scores = vf_select(vf_lt(slot, vf_set1((float)last)), scores, hidden);
    return vf_select(vf_lt(slot, vf_set1((float)first)), hidden, scores);
}

/* Scores with their scale, soft cap and biases. */
static void adjust_scores(const struct cyg_attention *a, const struct attention_row *row, float *scores, int first, int last, int64_t key) {
    vf scale = vf_set1(a->scale), cap = vf_set1(a->softcap), inverse = vf_set1(a->softcap > 0 ? 1 / a->softcap : 0);
    for (int j = first / VF * VF; j < last; j += VF) {
        vf s = vf_mul(vf_load(scores + j), scale);
        vf_store(scores + j, a->softcap > 0 ? capped(s, cap, inverse) : s);
    }
    if (row->relative) add_slots(scores, row->relative + key, first, last);
    if (row->key_bias) add_slots(scores, row->key_bias + key, first, last);
    if (row->bias) add_slots(scores, row->bias + key, first, last);
}

/* Scores of one row to probabilities relative to its maximum in the chunk, for the allowed slots first..last. */
static void row_probabilities(const struct cyg_attention *a, struct attention_row *row, float *scores, int first, int last, int64_t key) {
    const int adjusted = a->softcap > 0 || row->relative || row->key_bias || row->bias, start = first / VF * VF;
    vf scale = vf_set1(adjusted ? 1 : a->scale), max = vf_set1(-INFINITY), sum = vf_zero();
    if (adjusted) adjust_scores(a, row, scores, first, last, key);
    for (int j = start; j < last; j += VF) {
        vf s = vf_mul(vf_load(scores + j), scale);
        if (j < first || j + VF > last) s = hide_slots(s, j, first, last);
        vf_store(scores + j, s);
        max = vf_max(s, max);
    }
    row->max = vf_reduce_max(max);
    /* While every score is -infinity any finite shift will do; a NaN, which no maximum keeps, shows in the sum. */
    vf shift = vf_set1(row->max == -INFINITY ? 0 : row->max);
    for (int j = start; j < last; j += VF) {
        vf p = vf_exp(vf_sub(vf_load(scores + j), shift));
        vf_store(scores + j, p);
        sum = vf_add(sum, p);
    }
    row->sum = vf_reduce_add(sum);
}

static int slot_of(int64_t key, int64_t chunk_start) {
    int64_t slot = key - chunk_start;
    return slot < 0 ? 0 : slot > CYG_KEY_CHUNK ? CYG_KEY_CHUNK : (int)slot;
}

/* One tile at one chunk. A row without an allowed slot here gets a sum of zero. */
static void attend_tile(const struct cyg_attention *a, struct attention_row *rows, int count, int64_t chunk, int ahead) {
    struct attention_tile t;
    int64_t key = chunk * CYG_KEY_CHUNK;
    t.any_first = t.shared_last = CYG_KEY_CHUNK;
    t.any_last = t.shared_first = 0;
    for (int r = 0; r < count; r++) {
        int first = t.first[r] = slot_of(rows[r].first, key), last = t.last[r] = slot_of(rows[r].last, key);
        t.any_first = first < t.any_first ? first : t.any_first;
        t.any_last = last > t.any_last ? last : t.any_last;
        t.shared_first = first > t.shared_first ? first : t.shared_first;
        t.shared_last = last < t.shared_last ? last : t.shared_last;
        rows[r].max = -INFINITY;
        rows[r].sum = 0;
    }
    if (t.any_first >= t.any_last) return;
    if (t.shared_first >= t.shared_last) t.shared_first = t.shared_last = t.any_last;
    size_t size = a->kv_kind == CYG_KV_F32 ? sizeof(float) : sizeof(uint16_t);
    int start = t.any_first / CYG_KEY_BLOCK, end = (t.any_last + CYG_KEY_BLOCK - 1) / CYG_KEY_BLOCK;
    for (int i = 0; i < CHUNK_BLOCKS; i++) {
        int64_t block = chunk * CHUNK_BLOCKS + (i < start ? start : i < end ? i : end - 1);
        t.blocks[i] = (const char *)a->blocks[block] + (size_t)a->k_offset * size;
    }
    t.v_offset = (size_t)(a->v_offset - a->k_offset) * size;
    t.rows = rows;
    t.head_dim = a->head_dim;
    t.ahead = ahead;
    tile_scores(a->kv_kind, count, &t);
    for (int r = 0; r < count; r++)
        if (t.first[r] < t.last[r])
            row_probabilities(a, rows + r, t.scores[r], t.first[r], t.last[r], key);
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

/* All rows at one chunk, into their parts. */
static void attend_chunk(const struct cyg_attention *a, struct attention_row *rows, int count, int64_t chunk) {
    for (int r = 0; r < count; r += tile_rows(count - r)) attend_tile(a, rows + r, tile_rows(count - r), chunk, r == 0);
}

/* Adds a row's part to what is joined. */
static void join_part(struct attention_row *row, int64_t d) {
    if (row->sum == 0) return; /* no key allowed, or every score -infinity: there may be no part */
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
