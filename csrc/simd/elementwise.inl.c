/* y += a x, products, soft capping, and the place of the largest element. */

static void axpy(int64_t n, float a, const float *x, float *y) {
    int64_t i = 0;
    vf factor = vf_set1(a);
    for (; i + VF <= n; i += VF) vf_store(y + i, vf_fma(factor, vf_load(x + i), vf_load(y + i)));
    if (i < n) vf_store_n(y + i, vf_fma(factor, vf_load_n(x + i, n - i), vf_load_n(y + i, n - i)), n - i);
}

static void multiply(int64_t n, const float *x, float *y) {
    int64_t i = 0;
    for (; i + VF <= n; i += VF) vf_store(y + i, vf_mul(vf_load(x + i), vf_load(y + i)));
    if (i < n) vf_store_n(y + i, vf_mul(vf_load_n(x + i, n - i), vf_load_n(y + i, n - i)), n - i);
}

CYG_INLINE vf capped(vf x, vf cap, vf inverse) {
    return vf_mul(cap, vf_tanh(vf_mul(x, inverse)));
}

static void softcap(int64_t n, float cap, float *x) {
    int64_t i = 0;
    vf c = vf_set1(cap), inverse = vf_set1(1 / cap);
    for (; i + VF <= n; i += VF) vf_store(x + i, capped(vf_load(x + i), c, inverse));
    if (i < n) vf_store_n(x + i, capped(vf_load_n(x + i, n - i), c, inverse), n - i);
}

static int64_t first_equal(int64_t n, const float *x, float value) {
    for (int64_t i = 0; i < n; i++)
        if (x[i] == value) return i;
    return -1;
}

/* Maxima of chunks; only the chunk that holds the largest element is searched for its place. */
static int64_t argmax(int64_t n, const float *x) {
    enum { CHUNK = 64 * VF };
    float best = -INFINITY;
    int64_t place = 0;
    for (int64_t start = 0; start < n; start += CHUNK) {
        int64_t end = start + CHUNK < n ? start + CHUNK : n, i = start;
        vf m[4];
        for (int u = 0; u < 4; u++) m[u] = vf_set1(-INFINITY);
        /* A NaN as the first operand of vf_max gives the second: it never wins. */
        for (; i + 4 * VF <= end; i += 4 * VF)
            for (int u = 0; u < 4; u++) m[u] = vf_max(vf_load(x + i + u * VF), m[u]);
        float largest = vf_reduce_max(vf_max(vf_max(m[0], m[1]), vf_max(m[2], m[3])));
        for (; i < end; i++) largest = x[i] > largest ? x[i] : largest;
        if (largest > best) {
            best = largest;
            place = start;
        }
    }
    int64_t offset = first_equal(n - place, x + place, best);
    return offset < 0 ? -1 : place + offset;
}
