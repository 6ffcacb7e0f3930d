/* Softmax and log-softmax of rows. */

CYG_INLINE float row_max(const float *x, int64_t n) {
    vf m[4];
    for (int u = 0; u < 4; u++) m[u] = vf_set1(-INFINITY);
    int64_t i = 0;
    for (; i + 4 * VF <= n; i += 4 * VF)
        for (int u = 0; u < 4; u++) m[u] = vf_max(vf_load(x + i + u * VF), m[u]);
    float largest = vf_reduce_max(vf_max(vf_max(m[0], m[1]), vf_max(m[2], m[3])));
    for (; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/* Sum of exp(x - shift); the terms go to `terms` unless NULL. Chunks are added in double, so that the error does not grow with n. */
CYG_INLINE double exp_sum(const float *x, int64_t n, float shift, float *terms) {
    enum { CHUNK = 64 * VF };
    vf c = vf_set1(shift);
    double total = 0;
    for (int64_t start = 0; start < n; start += CHUNK) {
        int64_t end = start + CHUNK < n ? start + CHUNK : n, i = start;
        vf sum = vf_zero();
        for (; i + VF <= end; i += VF) {
            vf e = vf_exp(vf_sub(vf_load(x + i), c));
            if (terms) vf_store(terms + i, e);
            sum = vf_add(sum, e);
        }
        if (i < end) {
            vf e = vf_exp(vf_sub(vf_load_n(x + i, end - i), c));
            if (terms) vf_store_n(terms + i, e, end - i);
            sum = vf_add(sum, vf_select(vm_first(end - i), e, vf_zero()));
        }
        total += vf_reduce_add(sum);
    }
    return total;
}

static void softmax(float *x, int64_t ldx, const uint8_t *mask, int64_t ldm, int64_t m, int64_t n) {
    for (int64_t row = 0; row < m; row++, x += ldx) {
        if (mask)
            for (int64_t i = 0; i < n; i++) x[i] = mask[row * ldm + i] ? x[i] : -INFINITY;
        float largest = row_max(x, n);
        double total = exp_sum(x, n, largest == -INFINITY ? 0 : largest, x);
        vf factor = vf_set1(total == 0 ? 0 : (float)(1 / total));
        int64_t i = 0;
        for (; i + VF <= n; i += VF) vf_store(x + i, vf_mul(vf_load(x + i), factor));
        if (i < n) vf_store_n(x + i, vf_mul(vf_load_n(x + i, n - i), factor), n - i);
    }
}

static void log_softmax(float *x, int64_t ldx, int64_t m, int64_t n) {
    for (int64_t row = 0; row < m; row++, x += ldx) {
        float largest = row_max(x, n);
        vf shift = vf_set1(largest == -INFINITY ? 0 : largest), log_total = vf_set1((float)log(exp_sum(x, n, largest == -INFINITY ? 0 : largest, NULL)));
        int64_t i = 0;
        for (; i + VF <= n; i += VF) vf_store(x + i, vf_sub(vf_sub(vf_load(x + i), shift), log_total));
        if (i < n) vf_store_n(x + i, vf_sub(vf_sub(vf_load_n(x + i, n - i), shift), log_total), n - i);
    }
}
