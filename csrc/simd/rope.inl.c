/* Rotary positions (Su et al. 2021): pairs of features rotated in place. */

CYG_INLINE void rotate_step(float *x, float *y, const float *cosine, const float *sine, int64_t n) {
    vf a = vf_get(x, n), b = vf_get(y, n), c = vf_get(cosine, n), s = vf_get(sine, n);
    vf_put(x, vf_fnma(b, s, vf_mul(a, c)), n);
    vf_put(y, vf_fma(a, s, vf_mul(b, c)), n);
}

static void rotate(float *x, int64_t heads, int64_t stride, int64_t half, int interleaved, const float *cosine, const float *sine) {
    for (; heads > 0; heads--, x += stride) {
        int64_t i = 0;
        if (interleaved) {
            for (; i < half; i++) {
                float a = x[2 * i], b = x[2 * i + 1];
                x[2 * i] = a * cosine[i] - b * sine[i];
                x[2 * i + 1] = b * cosine[i] + a * sine[i];
            }
            continue;
        }
        for (; i + VF <= half; i += VF) rotate_step(x + i, x + half + i, cosine + i, sine + i, VF);
        if (i < half) rotate_step(x + i, x + half + i, cosine + i, sine + i, half - i);
    }
}
