/* Layer normalisation and root-mean-square normalisation of rows. */

/* Sums of x - shift and of its square, in four running sums each: enough to hide the latency of the adds. */
CYG_INLINE void norm_sums(const float *x, int64_t d, float shift, float *first, float *second) {
    vf s[4], q[4], c = vf_set1(shift);
    for (int u = 0; u < 4; u++) s[u] = q[u] = vf_zero();
    int64_t i = 0;
    for (; i + 4 * VF <= d; i += 4 * VF)
        for (int u = 0; u < 4; u++) {
            vf v = vf_sub(vf_load(x + i + u * VF), c);
            s[u] = vf_add(s[u], v);
            q[u] = vf_fma(v, v, q[u]);
        }
    for (; i < d; i += VF) {
        int64_t n = d - i < VF ? d - i : VF;
        vf v = vf_select(vm_first(n), vf_sub(vf_get(x + i, n), c), vf_zero());
        s[0] = vf_add(s[0], v);
        q[0] = vf_fma(v, v, q[0]);
    }
    *first = vf_reduce_add(vf_add(vf_add(s[0], s[1]), vf_add(s[2], s[3])));
    *second = vf_reduce_add(vf_add(vf_add(q[0], q[1]), vf_add(q[2], q[3])));
}

/* y = ((x - shift) - rest) * scale * weight + bias. */
CYG_INLINE void norm_step(const float *x, float shift, float rest, float scale, const float *weight, const float *bias, float *y, int64_t n) {
    vf v = vf_mul(vf_sub(vf_sub(vf_get(x, n), vf_set1(shift)), vf_set1(rest)), vf_set1(scale));
    if (weight) v = vf_mul(v, vf_get(weight, n));
    if (bias) v = vf_add(v, vf_get(bias, n));
    vf_put(y, v, n);
}

static void layer_norm(const float *x, int64_t ldx, int64_t m, int64_t d, const float *weight, const float *bias, float eps, float *y, int64_t ldy) {
    for (; m > 0 && d > 0; m--, x += ldx, y += ldy) {
        /* The rounding error of the mean is measured in the second pass (rest) and taken off, which matters for rows far from zero. */
        float sum, squares, shift, rest;
        norm_sums(x, d, 0, &sum, &squares);
        shift = sum / (float)d;
        norm_sums(x, d, shift, &sum, &squares);
        rest = sum / (float)d;
        float variance = squares / (float)d - rest * rest, scale = 1 / sqrtf((variance > 0 || variance != variance ? variance : 0) + eps);
        int64_t i = 0;
        for (; i + VF <= d; i += VF) norm_step(x + i, shift, rest, scale, weight ? weight + i : NULL, bias ? bias + i : NULL, y + i, VF);
        if (i < d) norm_step(x + i, shift, rest, scale, weight ? weight + i : NULL, bias ? bias + i : NULL, y + i, d - i);
    }
}

static void rms_norm(const float *x, int64_t ldx, int64_t m, int64_t d, const float *weight, float eps, float *y, int64_t ldy) {
    for (; m > 0 && d > 0; m--, x += ldx, y += ldy) {
        float sum, squares;
        norm_sums(x, d, 0, &sum, &squares);
        vf scale = vf_set1(1 / sqrtf(squares / (float)d + eps));
        for (int64_t i = 0; i < d; i += VF) {
            int64_t n = d - i < VF ? d - i : VF;
            vf v = vf_mul(vf_get(x + i, n), scale);
            vf_put(y + i, weight ? vf_mul(v, vf_get(weight + i, n)) : v, n);
        }
    }
}
