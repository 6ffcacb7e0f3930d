/* Activations to int8 per group, four groups at a time where there are as many: their reductions over lanes share instructions, their steps a division. */

#define QUANTIZED 4
#define QUANTIZE_LEAST 0x1p-100f /* a group with nothing larger counts as zero: 127 divided by less could overflow */

/* What the lanes of each of four vectors come to: lane i of the result for v[i]. */
CYG_INLINE vf tops(vf v[QUANTIZED]) {
    vf_quarters(v);
    vf all = vf_top(vf_top(v[0], v[1]), vf_top(v[2], v[3]));
    UNROLL for (int stride = VF / 2; stride >= QUANTIZED; stride /= 2) all = vf_top(all, vf_swap(all, stride));
    return all;
}

CYG_INLINE vf totals(vf v[QUANTIZED]) {
    vf_quarters(v);
    vf all = vf_add(vf_add(v[0], v[1]), vf_add(v[2], v[3]));
    UNROLL for (int stride = VF / 2; stride >= QUANTIZED; stride /= 2) all = vf_add(all, vf_swap(all, stride));
    return all;
}

/* Whether a group has numbers to speak of, all finite: one comparison of bits, which order as the numbers do. */
CYG_INLINE int quantizable(float largest) {
    return bits_of_float(largest) - bits_of_float(QUANTIZE_LEAST) <= bits_of_float(FLT_MAX) - bits_of_float(QUANTIZE_LEAST);
}

CYG_INLINE void quantize_groups(int count, int hadamard, const float *x, int8_t *q, float *scale, int32_t *sum) {
    vf values[QUANTIZED][GROUP_VECTORS], top[QUANTIZED], total[QUANTIZED];
    float largest[VF], step[VF], inverse[VF], sums[VF];
    UNROLL for (int g = 0; g < count; g++) {
        UNROLL for (int i = 0; i < GROUP_VECTORS; i++) values[g][i] = vf_load(x + g * CYG_GROUP + i * VF);
        if (hadamard) hadamard_group(values[g]);
        top[g] = vf_abs(values[g][0]);
        UNROLL for (int i = 1; i < GROUP_VECTORS; i++) top[g] = vf_top(top[g], vf_abs(values[g][i]));
    }
    UNROLL for (int g = count; g < QUANTIZED; g++) top[g] = total[g] = vf_zero();
    const vf all = tops(top);
    vf_store(largest, all);
    vf_store(inverse, vf_div(vf_set1(127), all));
    vf_store(step, vf_mul(all, vf_set1(hadamard ? HADAMARD_ROOT / 127 : 1.0f / 127)));
    int plain = 1;
    UNROLL for (int g = 0; g < count; g++) plain &= quantizable(largest[g]);
    if (!plain) {
        for (int g = 0; g < count; g++) {
            if (quantizable(largest[g])) continue;
            step[g] = largest[g] < QUANTIZE_LEAST ? 0 : NAN;
            inverse[g] = 0;
            for (int i = 0; i < GROUP_VECTORS; i++) values[g][i] = vf_zero();
        }
    }
    UNROLL for (int g = 0; g < count; g++) {
        UNROLL for (int i = 0; i < GROUP_VECTORS; i++) {
            const vf code = vf_round(vf_mul(values[g][i], vf_set1(inverse[g])));
            dot_store_codes(q + g * CYG_GROUP + i * VF, code);
            total[g] = i ? vf_add(total[g], code) : code;
        }
    }
    vf_store(sums, totals(total));
    UNROLL for (int g = 0; g < count; g++) {
        scale[g] = step[g];
        sum[g] = (int32_t)sums[g];
    }
}

CYG_INLINE void quantize_in(int hadamard, const float *x, int64_t ldx, int64_t m, int64_t k, int8_t *q, float *scale, int32_t *sum) {
    const int64_t groups = groups_of(k), whole = k / CYG_GROUP;
    for (int64_t row = 0; row < m; row++, x += ldx, q += groups * CYG_GROUP, scale += groups, sum += groups) {
        int64_t g = 0;
        for (; g + QUANTIZED <= whole; g += QUANTIZED) quantize_groups(QUANTIZED, hadamard, x + g * CYG_GROUP, q + g * CYG_GROUP, scale + g, sum + g);
        for (; g < whole; g++) quantize_groups(1, hadamard, x + g * CYG_GROUP, q + g * CYG_GROUP, scale + g, sum + g);
        if (g < groups) { /* never transformed: codes past k must stay zero */
            float padded[CYG_GROUP] = {0};
            memcpy(padded, x + g * CYG_GROUP, (size_t)(k - g * CYG_GROUP) * sizeof *x);
            quantize_groups(1, 0, padded, q + g * CYG_GROUP, scale + g, sum + g);
        }
    }
}

static void quantize_rows(enum cyg_basis basis, const float *x, int64_t ldx, int64_t m, int64_t k, int8_t *q, float *scale, int32_t *sum) {
    if (basis == CYG_HADAMARD) quantize_in(1, x, ldx, m, k, q, scale, sum);
    else quantize_in(0, x, ldx, m, k, q, scale, sum);
}
