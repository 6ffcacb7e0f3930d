/* Products with float32, float16 and bfloat16 weights: y = alpha * (x W^T + bias) (+ y).

   A tile is a few rows of x by one panel: per step of k one broadcast of each row's x meets NV weight vectors. Every output is one chain of fused
   multiply-adds, k ascending, whatever the number of rows. Long rows are cut into blocks of F32_DEPTH, so that a block of the panel stays in the
   first-level cache while all rows pass over it; between blocks the sums wait in memory, exactly. A tile is written out as soon as it is done: the next one
   hides how long the memory of the result takes. Half-precision weights are widened once a block when many rows use them. Few rows read the packed
   weights directly and walk several panels side by side to hide the latency of the chains. */

#define F32_PASS (8 * F32_ROWS) /* rows that share one pass over a block of a panel */
#define F32_RUN 4               /* panels that share a block of x while it is in the second-level cache */

/* Rows of x against a range of k of one panel, or of several panels `stride` bytes apart. */
struct f32_tile {
    const float *x;
    int64_t ldx;
    const char *w;
    int64_t stride, k;
    float *sums; /* (rows, panels * NR) */
    int resume;  /* 0: sums start from zero; 1: from what `sums` holds */
    int ahead;   /* whether weights further on are asked for: nobody has read them yet */
};

typedef void f32_tile_function(const struct f32_tile *tile);

CYG_INLINE vf f32_load(enum cyg_weight_kind kind, const char *w) {
    if (kind == CYG_F16) return vf_load_f16((const uint16_t *)w);
    if (kind == CYG_BF16) return vf_load_bf16((const uint16_t *)w);
    return vf_load((const float *)w);
}

CYG_INLINE void f32_multiply(enum cyg_weight_kind kind, int rows, int panels, const struct f32_tile *tile) {
    const int size = kind == CYG_F32 ? 4 : 2, vectors = panels * NV;
    const int64_t ldx = tile->ldx, stride = tile->stride;
    const float *x = tile->x;
    const char *w = tile->w;
    vf acc[F32_ROWS][F32_WIDE * NV];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++) acc[r][v] = tile->resume ? vf_load(tile->sums + (r * vectors + v) * VF) : vf_zero();
    for (int64_t k = tile->k; k > 0; k--, x++, w += NR * size) {
        vf wide[F32_WIDE * NV];
        UNROLL for (int v = 0; v < vectors; v++) wide[v] = f32_load(kind, w + v / NV * stride + v % NV * VF * size);
        if (tile->ahead) {
            UNROLL for (int p = 0; p < panels; p++)
                UNROLL for (int b = 0; b < NR * size; b += 64) PREFETCH(w + p * stride + b + PREFETCH_AHEAD);
        }
        UNROLL for (int r = 0; r < rows; r++) {
            const vf xr = vf_set1(x[r * ldx]);
            UNROLL for (int v = 0; v < vectors; v++) acc[r][v] = vf_fma(xr, wide[v], acc[r][v]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++) vf_store(tile->sums + (r * vectors + v) * VF, acc[r][v]);
}

#define TILE(rows) \
    static void f32_rows_##rows(const struct f32_tile *tile) { f32_multiply(CYG_F32, rows, 1, tile); }
F32_TILES(TILE)
#undef TILE

/* For few rows: one panel, and as many side by side as registers allow. */
#define TILE(rows) \
    static void f32_one_##rows(const struct f32_tile *tile) { f32_multiply(CYG_F32, rows, 1, tile); } \
    static void f32_side_##rows(const struct f32_tile *tile) { f32_multiply(CYG_F32, rows, F32_SIDE(rows), tile); } \
    static void f16_one_##rows(const struct f32_tile *tile) { f32_multiply(CYG_F16, rows, 1, tile); } \
    static void f16_side_##rows(const struct f32_tile *tile) { f32_multiply(CYG_F16, rows, F32_SIDE(rows), tile); } \
    static void bf16_one_##rows(const struct f32_tile *tile) { f32_multiply(CYG_BF16, rows, 1, tile); } \
    static void bf16_side_##rows(const struct f32_tile *tile) { f32_multiply(CYG_BF16, rows, F32_SIDE(rows), tile); }
TILE(1) TILE(2) TILE(3) TILE(4)
#undef TILE

#define FUNCTION(rows) f32_rows_##rows,
static f32_tile_function *const f32_tiles[F32_ROWS + 1] = {0, F32_TILES(FUNCTION)};
#undef FUNCTION

#define FEW(kind, form) {0, kind##_##form##_1, kind##_##form##_2, kind##_##form##_3, kind##_##form##_4}
static f32_tile_function *const f32_few[3][2][FEW_ROWS + 1] = {
    {FEW(f32, one), FEW(f32, side)}, {FEW(f16, one), FEW(f16, side)}, {FEW(bf16, one), FEW(bf16, side)},
};
#undef FEW

/* Few rows: memory is what they wait for, so each panel is read once, from end to end. */
static void f32_product_few(enum cyg_weight_kind kind, const struct cyg_product *share) {
    const int rows = (int)share->m, side = F32_SIDE(rows);
    const int64_t bytes = (int64_t)panel_bytes(kind, share->k);
    float sums[FEW_ROWS * F32_WIDE * NR];
    struct f32_tile tile = {.x = share->x, .ldx = share->ldx, .stride = bytes, .k = share->k, .sums = sums, .resume = 0, .ahead = 1};
    for (int64_t panel = share->first_panel; panel < share->last_panel;) {
        const int panels = share->last_panel - panel >= side ? side : 1;
        tile.w = (const char *)share->weight + panel * bytes;
        f32_few[kind][panels > 1][rows](&tile);
        for (int p = 0; p < panels; p++) finish_tile(share, 0, rows, panel + p, sums + p * NR, panels * NR);
        panel += panels;
    }
}

/* Widens a range of k of a half-precision panel. */
static void f32_widen(enum cyg_weight_kind kind, const char *w, int64_t k, float *wide) {
    for (int64_t i = 0; i < k * NR; i += VF) vf_store(wide + i, f32_load(kind, w + 2 * i));
}

/* Rows first..first + rows of the share, at most F32_PASS, against panels panel..panel + panels, at most F32_RUN. */
static void f32_pass(enum cyg_weight_kind kind, const struct cyg_product *share, int64_t first, int rows, int64_t panel, int panels) {
    const int64_t bytes = (int64_t)panel_bytes(kind, share->k);
    const char *w = (const char *)share->weight + panel * bytes;
    const int size = kind == CYG_F32 ? 4 : 2, tiles = (rows + F32_ROWS - 1) / F32_ROWS;
    float sums[F32_RUN][F32_PASS * NR], wide[F32_DEPTH * NR];
    for (int64_t k = 0; k < share->k || k == 0; k += F32_DEPTH) {
        const int64_t depth = share->k - k < F32_DEPTH ? share->k - k : F32_DEPTH;
        for (int p = 0; p < panels; p++) {
            const char *block = w + p * bytes + k * NR * size;
            if (kind != CYG_F32) {
                f32_widen(kind, block, depth, wide);
                block = (const char *)wide;
            }
            for (int t = 0; t < tiles; t++) { /* heights differ by at most one */
                const int row = rows * t / tiles, height = rows * (t + 1) / tiles - row;
                const struct f32_tile tile = {.x = share->x + (first + row) * share->ldx + k,
                                              .ldx = share->ldx,
                                              .w = block,
                                              .k = depth,
                                              .sums = sums[p] + row * NR,
                                              .resume = k > 0,
                                              .ahead = t == 0 && kind == CYG_F32};
                f32_tiles[height](&tile);
                if (k + depth == share->k) finish_tile(share, first + row, height, panel + p, sums[p] + row * NR, NR);
            }
        }
    }
}

CYG_INLINE void f32_product(enum cyg_weight_kind kind, const struct cyg_product *share) {
    if (share->m <= 0) return;
    if (share->m <= FEW_ROWS) {
        f32_product_few(kind, share);
        return;
    }
    for (int64_t row = 0; row < share->m; row += F32_PASS) {
        const int rows = share->m - row < F32_PASS ? (int)(share->m - row) : F32_PASS;
        for (int64_t panel = share->first_panel; panel < share->last_panel; panel += F32_RUN) {
            const int64_t left = share->last_panel - panel;
            f32_pass(kind, share, row, rows, panel, left < F32_RUN ? (int)left : F32_RUN);
        }
    }
}

static void product_f32(const struct cyg_product *share) { f32_product(CYG_F32, share); }
static void product_f16(const struct cyg_product *share) { f32_product(CYG_F16, share); }
static void product_bf16(const struct cyg_product *share) { f32_product(CYG_BF16, share); }
