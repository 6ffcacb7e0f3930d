/* Packed weights: sizes, packing, unpacking, and the end that all products share.

   Float kinds: values at [k][row of the panel]. Integer kinds: per group of CYG_GROUP first the NR scales (float16), for CYG_I4M the NR minima
   (float16), then the codes at [k / 4][row][4], four steps of k side by side as the dot products of all instruction sets take them. In four bits, the
   low halves of the bytes are one such step and the high halves the next: byte [k / 8][row][4]. So a product reads a panel in one ascending sweep:
   8.5 bits a weight for CYG_I8 and CYG_I8H, 4.5 for CYG_I4, 5 for CYG_I4M. */

CYG_INLINE int is_i8(enum cyg_weight_kind kind) { return kind == CYG_I8 || kind == CYG_I8H; }

/* A last group that is not full stays as it is, so that what pads it is zero. */
CYG_INLINE int in_hadamard_basis(enum cyg_weight_kind kind, int64_t count) { return kind == CYG_I8H && count >= CYG_GROUP; }

CYG_INLINE int64_t groups_of(int64_t k) { return (k + CYG_GROUP - 1) / CYG_GROUP; }

CYG_INLINE int64_t group_scale_bytes(enum cyg_weight_kind kind) { return kind == CYG_I4M ? 4 * NR : 2 * NR; }

CYG_INLINE int64_t group_bytes(enum cyg_weight_kind kind) {
    return group_scale_bytes(kind) + (is_i8(kind) ? CYG_GROUP * NR : CYG_GROUP / 2 * NR);
}

static size_t panel_bytes(enum cyg_weight_kind kind, int64_t k) {
    int64_t bytes;
    if (kind == CYG_F32) bytes = k * NR * 4;
    else if (kind == CYG_F16 || kind == CYG_BF16) bytes = k * NR * 2;
    else bytes = groups_of(k) * group_bytes(kind);
    return (size_t)((bytes + 63) / 64 * 64);
}

CYG_INLINE void pack_values(enum cyg_weight_kind kind, const float *w, int64_t ldw, int64_t rows, int64_t k, void *panel) {
    float *f32 = panel;
    uint16_t *half = panel;
    for (int64_t first = 0; first < k; first += 16) { /* 16 steps of all rows stay in the cache while they are turned over */
        const int64_t last = first + 16 < k ? first + 16 : k;
        for (int64_t r = 0; r < NR; r++) {
            for (int64_t i = first; i < last; i++) {
                const float value = r < rows ? w[r * ldw + i] : 0;
                if (kind == CYG_F32) f32[i * NR + r] = value;
                else half[i * NR + r] = kind == CYG_F16 ? f16_narrow(value) : bf16_narrow(value);
            }
        }
    }
}

static void pack_float(enum cyg_weight_kind kind, const float *w, int64_t ldw, int64_t rows, int64_t k, void *panel) {
    if (kind == CYG_F32) pack_values(CYG_F32, w, ldw, rows, k, panel);
    else if (kind == CYG_F16) pack_values(CYG_F16, w, ldw, rows, k, panel);
    else pack_values(CYG_BF16, w, ldw, rows, k, panel);
    const size_t bytes = (size_t)(k * NR * (kind == CYG_F32 ? 4 : 2));
    memset((char *)panel + bytes, 0, panel_bytes(kind, k) - bytes);
}

/* The codes of one group, from rows that lie `stride` bytes apart: four steps of a row are one word. */
CYG_INLINE void pack_group(enum cyg_weight_kind kind, const uint8_t *codes, int64_t stride, uint8_t *out) {
    for (int64_t r = 0; r < NR; r++) {
        uint32_t words[CYG_GROUP / 4];
        memcpy(words, codes + r * stride, CYG_GROUP);
        if (kind == CYG_I8)
            for (int64_t step = 0; step < CYG_GROUP / 4; step++) {
                const uint32_t word = words[step] ^ DOT_FLIP * 0x01010101u;
                memcpy(out + (step * NR + r) * 4, &word, 4);
            }
        else
            for (int64_t pair = 0; pair < CYG_GROUP / 8; pair++) {
                const uint32_t word = words[2 * pair] | words[2 * pair + 1] << 4;
                memcpy(out + (pair * NR + r) * 4, &word, 4);
            }
    }
}

/* A group that does not fill a panel: what pads it are weights of zero scale. */
static void pad_group(const uint8_t *codes, int64_t stride, int64_t rows, int64_t steps, uint8_t padded[NR * CYG_GROUP]) {
    memset(padded, 0, NR * CYG_GROUP);
    for (int64_t r = 0; r < rows; r++) memcpy(padded + r * CYG_GROUP, codes + r * stride, (size_t)steps);
}

static void pack_codes(enum cyg_weight_kind kind, const uint8_t *codes, const float *scales, const float *minima, int64_t rows, int64_t k,
                       void *panel) {
    const int64_t groups = groups_of(k);
    uint8_t padded[NR * CYG_GROUP];
    for (int64_t g = 0; g < groups; g++) {
        char *group = (char *)panel + g * group_bytes(kind);
        uint16_t *scale = (uint16_t *)group;
        uint8_t *out = (uint8_t *)group + group_scale_bytes(kind);
        for (int64_t r = 0; r < NR; r++) {
            scale[r] = r < rows ? f16_narrow(scales[r * groups + g]) : 0;
            if (kind == CYG_I4M) scale[NR + r] = r < rows ? f16_narrow(minima[r * groups + g]) : 0;
        }
        const uint8_t *first = codes + g * CYG_GROUP;
        const int64_t steps = k - g * CYG_GROUP;
        const int whole = rows == NR && steps >= CYG_GROUP;
        if (!whole) pad_group(first, k, rows, steps < CYG_GROUP ? steps : CYG_GROUP, padded);
        if (is_i8(kind)) pack_group(CYG_I8, whole ? first : padded, whole ? k : CYG_GROUP, out);
        else pack_group(CYG_I4, whole ? first : padded, whole ? k : CYG_GROUP, out);
    }
    const size_t bytes = (size_t)(groups * group_bytes(kind));
    memset((char *)panel + bytes, 0, panel_bytes(kind, k) - bytes);
}

/* The codes of one row of a group, as they were packed. */
CYG_INLINE void gather_codes(enum cyg_weight_kind kind, const uint8_t *group, int64_t r, uint8_t codes[CYG_GROUP]) {
    uint32_t words[CYG_GROUP / 4];
    if (is_i8(kind))
        for (int64_t step = 0; step < CYG_GROUP / 4; step++) {
            memcpy(words + step, group + (step * NR + r) * 4, 4);
            words[step] ^= DOT_FLIP * 0x01010101u;
        }
    else
        for (int64_t pair = 0; pair < CYG_GROUP / 8; pair++) {
            uint32_t word;
            memcpy(&word, group + (pair * NR + r) * 4, 4);
            words[2 * pair] = word & 0x0f0f0f0fu;
            words[2 * pair + 1] = word >> 4 & 0x0f0f0f0fu;
        }
    memcpy(codes, words, CYG_GROUP);
}

/* A row in float32: scale * q, scale * (q - 8), or scale * q + minimum, each operation rounded. */
CYG_INLINE void unpack_codes(enum cyg_weight_kind kind, const char *panel, int64_t k, int64_t r, float *out) {
    for (int64_t first = 0; first < k; first += CYG_GROUP, panel += group_bytes(kind)) {
        const uint16_t *scales = (const uint16_t *)panel;
        const float scale = f16_widen(scales[r]), minimum = kind == CYG_I4M ? f16_widen(scales[NR + r]) : 0;
        const int64_t count = k - first < CYG_GROUP ? k - first : CYG_GROUP;
        uint8_t codes[CYG_GROUP];
        float values[CYG_GROUP];
        gather_codes(kind, (const uint8_t *)panel + group_scale_bytes(kind), r, codes);
        for (int64_t i = 0; i < CYG_GROUP; i++) {
            const int code = is_i8(kind) ? (int8_t)codes[i] : kind == CYG_I4 ? codes[i] - 8 : codes[i];
            values[i] = kind == CYG_I4M ? scale * (float)code + minimum : scale * (float)code;
        }
        if (in_hadamard_basis(kind, count)) hadamard_normal(values);
        memcpy(out + first, values, (size_t)count * sizeof *out);
    }
}

static void unpack_row(enum cyg_weight_kind kind, const void *weight, int64_t k, int64_t row, float *out) {
    const char *panel = (const char *)weight + row / NR * (int64_t)panel_bytes(kind, k);
    const int64_t r = row % NR;
    if (kind == CYG_F32)
        for (int64_t i = 0; i < k; i++) out[i] = ((const float *)panel)[i * NR + r];
    else if (kind == CYG_F16)
        for (int64_t i = 0; i < k; i++) out[i] = f16_widen(((const uint16_t *)panel)[i * NR + r]);
    else if (kind == CYG_BF16)
        for (int64_t i = 0; i < k; i++) out[i] = bf16_widen(((const uint16_t *)panel)[i * NR + r]);
    else if (kind == CYG_I8) unpack_codes(CYG_I8, panel, k, r, out);
    else if (kind == CYG_I8H) unpack_codes(CYG_I8H, panel, k, r, out);
    else if (kind == CYG_I4) unpack_codes(CYG_I4, panel, k, r, out);
    else unpack_codes(CYG_I4M, panel, k, r, out);
}

/* y = alpha * (sums + bias) (+ y) for `rows` rows of one panel; sums have row stride lds. */
static void finish_tile(const struct cyg_product *share, int64_t first_row, int64_t rows, int64_t panel, const float *sums, int64_t lds) {
    const vf alpha = vf_set1(share->alpha);
    for (int64_t r = 0; r < rows; r++) {
        float *y = share->y + (first_row + r) * share->ldy + panel * NR;
        for (int v = 0; v < NV; v++) {
            const int64_t column = panel * NR + v * VF, left = share->n - column < VF ? share->n - column : VF;
            if (left <= 0) break;
            vf value = vf_load(sums + r * lds + v * VF);
            if (share->bias) value = vf_add(value, left == VF ? vf_load(share->bias + column) : vf_load_n(share->bias + column, left));
            if (left == VF) vf_store(y + v * VF, share->accumulate ? vf_fma(alpha, value, vf_load(y + v * VF)) : vf_mul(alpha, value));
            else vf_store_n(y + v * VF, share->accumulate ? vf_fma(alpha, value, vf_load_n(y + v * VF, left)) : vf_mul(alpha, value), left);
        }
    }
}
