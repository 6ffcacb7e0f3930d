/* Activation functions elementwise, alone or as the gate of a gated feed-forward. */

CYG_INLINE vf activation_of(enum cyg_activation f, vf x) {
    switch (f) {
    case CYG_RELU: return vf_max(vf_zero(), x);
    case CYG_GELU: return vf_gelu(x);
    case CYG_GELU_TANH: return vf_gelu_tanh(x);
    case CYG_GELU_QUICK: return vf_mul(x, vf_sigmoid(vf_mul(x, vf_set1(1.702f))));
    case CYG_SILU: return vf_mul(x, vf_sigmoid(x));
    case CYG_TANH: return vf_tanh(x);
    case CYG_SIGMOID: return vf_sigmoid(x);
    case CYG_RELU2: return vf_mul(vf_max(vf_zero(), x), vf_max(vf_zero(), x));
    default: return x;
    }
}

CYG_INLINE void activation_step(enum cyg_activation f, const float *gate, const float *up, float *y, int64_t n) {
    vf v = activation_of(f, vf_get(gate, n));
    vf_put(y, up ? vf_mul(v, vf_get(up, n)) : v, n);
}

CYG_INLINE void activation_rows(enum cyg_activation f, const float *gate, int64_t ldg, const float *up, int64_t ldu, int64_t m, int64_t d, float *y,
                                int64_t ldy) {
    for (; m > 0; m--, gate += ldg, up = up ? up + ldu : NULL, y += ldy) {
        int64_t i = 0;
        for (; i + VF <= d; i += VF) activation_step(f, gate + i, up ? up + i : NULL, y + i, VF);
        if (i < d) activation_step(f, gate + i, up ? up + i : NULL, y + i, d - i);
    }
}

/* y = f(gate) * up; without `up`, y = f(gate). A new activation is a line here and one above. */
static void gate(enum cyg_activation f, const float *gate, int64_t ldg, const float *up, int64_t ldu, int64_t m, int64_t d, float *y, int64_t ldy) {
#define ACTIVATION(F) \
    case F: activation_rows(F, gate, ldg, up, ldu, m, d, y, ldy); break
    switch (f) {
        ACTIVATION(CYG_IDENTITY);
        ACTIVATION(CYG_RELU);
        ACTIVATION(CYG_GELU);
        ACTIVATION(CYG_GELU_TANH);
        ACTIVATION(CYG_GELU_QUICK);
        ACTIVATION(CYG_SILU);
        ACTIVATION(CYG_TANH);
        ACTIVATION(CYG_SIGMOID);
        ACTIVATION(CYG_RELU2);
    default: break;
    }
#undef ACTIVATION
}

static void activate(enum cyg_activation f, const float *x, int64_t n, float *y) {
    gate(f, x, 0, NULL, 0, 1, n, y, 0);
}
