/* Products with eight- and four-bit weights and activations quantised to eight bits: y = alpha * (x W^T + bias) (+ y).

   A tile is a few rows of x by one panel. Within a group of CYG_GROUP steps of k the sums are exact integers; then, in float32, groups ascending,
     acc = fma(float(sum) * weight_scale, x_scale, acc),       sum = sum(q * w), for CYG_I4 sum(q * w) - 8 * sum(q)
     acc = fma(minimum, x_scale * float(sum(q)), acc)          for CYG_I4M, after the line above
   whatever the number of rows. Panels of long rows are cut into blocks of INT_DEPTH groups, as in gemm_f32.inl.c. */

#define INT_PASS (8 * INT_ROWS) /* rows that share one pass over a block of a panel */

/* Rows of activations against some groups of one panel. */
struct int_tile {
    const int8_t *q;
    const float *q_scale;
    const int32_t *q_sum;
    int64_t ldq, lds; /* row strides: of q; of q_scale and q_sum */
    const char *w;
    int64_t groups;
    float *sums; /* (rows, NR) */
    int resume;  /* 0: sums start from zero; 1: from what `sums` holds */
    int ahead;   /* whether weights further on are asked for: nobody has read them yet */
};

/* float(sum) * scale, rounded once. Where DOT_ORIGIN is not zero sums come as DOT_ORIGIN + sum, and the fused operation takes the origin away
   exactly: scales are float16, so that origin, 3 * 2^22 times a scale, needs no rounding. */
CYG_INLINE vf dot_origin(vf scale) { return vf_mul(scale, vf_set1(-DOT_ORIGIN)); }
CYG_INLINE vf dot_scaled(vf sum, vf scale, vf origin) { return DOT_ORIGIN != 0 ? vf_fma(sum, scale, origin) : vf_mul(sum, scale); }

typedef void int_tile_function(const struct int_tile *tile);

CYG_INLINE void i8_group(int rows, const uint8_t *w, const int8_t *q, int64_t ldq, const int32_t *q_sum, int64_t lds, vf sums[INT_ROWS][NV]) {
    dot8_sum acc[INT_ROWS][NV];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < NV; v++) acc[r][v] = dot8_start(q_sum[r * lds]);
    DOT_STEPS for (int step = 0; step < CYG_GROUP / 4; step++) {
        dot8_weights wide[NV];
        UNROLL for (int v = 0; v < NV; v++) wide[v] = dot8_load(w + (step * NR + v * VF) * 4);
        UNROLL for (int r = 0; r < rows; r++) {
            const dot_codes codes = dot_codes_of(q + r * ldq + step * 4);
            UNROLL for (int v = 0; v < NV; v++) acc[r][v] = dot8_step(acc[r][v], wide[v], codes);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < NV; v++) sums[r][v] = dot8_end(acc[r][v]);
}

CYG_INLINE void i4_group(int rows, int zero, const uint8_t *w, const int8_t *q, int64_t ldq, const int32_t *q_sum, int64_t lds,
                         vf sums[INT_ROWS][NV]) {
    dot4_sum acc[INT_ROWS][NV];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < NV; v++) acc[r][v] = dot4_start(-zero * q_sum[r * lds]);
    DOT_STEPS for (int step = 0; step < CYG_GROUP / 4; step += 2) {
        dot4_weights low[NV], high[NV];
        UNROLL for (int v = 0; v < NV; v++) dot4_load(w + (step / 2 * NR + v * VF) * 4, &low[v], &high[v]);
        UNROLL for (int r = 0; r < rows; r++) {
            const dot_codes first = dot_codes_of(q + r * ldq + step * 4), second = dot_codes_of(q + r * ldq + step * 4 + 4);
            UNROLL for (int v = 0; v < NV; v++) acc[r][v] = dot4_step(dot4_step(acc[r][v], low[v], first), high[v], second);
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < NV; v++) sums[r][v] = dot4_end(acc[r][v], -zero * q_sum[r * lds]);
}

CYG_INLINE void int_multiply(enum cyg_weight_kind kind, int rows, const struct int_tile *tile) {
    const int64_t ldq = tile->ldq, lds = tile->lds;
    const char *w = tile->w;
    vf acc[INT_ROWS][NV];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < NV; v++) acc[r][v] = tile->resume ? vf_load(tile->sums + r * NR + v * VF) : vf_zero();
    for (int64_t g = 0; g < tile->groups; g++, w += group_bytes(kind)) {
        const uint16_t *scales = (const uint16_t *)w;
        const uint8_t *codes = (const uint8_t *)w + group_scale_bytes(kind);
        const int8_t *q = tile->q + g * CYG_GROUP;
        const int32_t *q_sum = tile->q_sum + g;
        vf sums[INT_ROWS][NV];
        if (tile->ahead) {
            UNROLL for (int b = 0; b < group_bytes(kind); b += 64) PREFETCH(w + b + PREFETCH_AHEAD);
        }
        if (kind == CYG_I8) i8_group(rows, codes, q, ldq, q_sum, lds, sums);
        else i4_group(rows, kind == CYG_I4 ? 8 : 0, codes, q, ldq, q_sum, lds, sums);
        UNROLL for (int v = 0; v < NV; v++) {
            const vf scale = vf_load_f16(scales + v * VF), origin = dot_origin(scale);
            UNROLL for (int r = 0; r < rows; r++)
                acc[r][v] = vf_fma(dot_scaled(sums[r][v], scale, origin), vf_set1(tile->q_scale[r * lds + g]), acc[r][v]);
            if (kind == CYG_I4M) {
                const vf minimum = vf_load_f16(scales + NR + v * VF);
                UNROLL for (int r = 0; r < rows; r++)
                    acc[r][v] = vf_fma(minimum, vf_set1(tile->q_scale[r * lds + g] * (float)q_sum[r * lds]), acc[r][v]);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < NV; v++) vf_store(tile->sums + r * NR + v * VF, acc[r][v]);
}

#define TILE(rows) \
    static void i8_rows_##rows(const struct int_tile *tile) { int_multiply(CYG_I8, rows, tile); } \
    static void i4_rows_##rows(const struct int_tile *tile) { int_multiply(CYG_I4, rows, tile); } \
    static void i4m_rows_##rows(const struct int_tile *tile) { int_multiply(CYG_I4M, rows, tile); }
INT_TILES(TILE)
#undef TILE

#define I8(rows) i8_rows_##rows,
#define I4(rows) i4_rows_##rows,
#define I4M(rows) i4m_rows_##rows,
static int_tile_function *const int_tiles[3][INT_ROWS + 1] = {{0, INT_TILES(I8)}, {0, INT_TILES(I4)}, {0, INT_TILES(I4M)}};
#undef I8
#undef I4
#undef I4M

/* Asks for the lines of y that finish_tile will write, all of them at once and from the next cache at best. */
CYG_INLINE void expect_tile(const struct cyg_product *share, int64_t first_row, int rows, int64_t panel) {
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < NR; i += 16) PREFETCH_WRITE(share->y + (first_row + r) * share->ldy + panel * NR + i);
}

/* Rows first..first + rows of the share, at most INT_PASS, against one panel. */
static void int_pass(enum cyg_weight_kind kind, const struct cyg_product *share, int64_t first, int rows, int64_t panel) {
    const char *w = (const char *)share->weight + panel * (int64_t)panel_bytes(kind, share->k);
    const int64_t groups = groups_of(share->k);
    const int tiles = (rows + INT_ROWS - 1) / INT_ROWS;
    float sums[INT_PASS * NR];
    for (int64_t g = 0; g < groups || g == 0; g += INT_DEPTH) {
        for (int t = 0; t < tiles; t++) { /* heights differ by at most one */
            const int row = rows * t / tiles, height = rows * (t + 1) / tiles - row;
            const int64_t start = (first + row) * groups + g;
            if (g + INT_DEPTH >= groups) expect_tile(share, first + row, height, panel);
            const struct int_tile tile = {.q = share->q + start * CYG_GROUP,
                                          .q_scale = share->q_scale + start,
                                          .q_sum = share->q_sum + start,
                                          .ldq = groups * CYG_GROUP,
                                          .lds = groups,
                                          .w = w + g * group_bytes(kind),
                                          .groups = groups - g < INT_DEPTH ? groups - g : INT_DEPTH,
                                          .sums = sums + row * NR,
                                          .resume = g > 0,
                                          .ahead = t == 0};
            int_tiles[kind == CYG_I8 ? 0 : kind == CYG_I4 ? 1 : 2][height](&tile);
        }
    }
    finish_tile(share, first, rows, panel, sums, NR);
}

static void int_product(enum cyg_weight_kind kind, const struct cyg_product *share) {
    for (int64_t row = 0; row < share->m; row += INT_PASS) {
        const int rows = share->m - row < INT_PASS ? (int)(share->m - row) : INT_PASS;
        for (int64_t panel = share->first_panel; panel < share->last_panel; panel++) int_pass(kind, share, row, rows, panel);
    }
}

static void product_i8(const struct cyg_product *share) { int_product(CYG_I8, share); }
static void product_i4(const struct cyg_product *share) { int_product(CYG_I4, share); }
static void product_i4m(const struct cyg_product *share) { int_product(CYG_I4M, share); }
