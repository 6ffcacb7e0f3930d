/* Tails and elementary functions on the vocabulary of any vec_<isa>.h: one set of polynomials, so every table follows the same formula.
   The coefficients are minimax fits made by tools/fit_polynomials.py. */
#ifndef CYG_VEC_MATH_H
#define CYG_VEC_MATH_H

/* The first n <= VF lanes; a constant n == VF leaves a plain load or store, so one body serves whole vectors and the tail. */
CYG_INLINE vf vf_get(const float *p, int64_t n) { return n == VF ? vf_load(p) : vf_load_n(p, n); }
CYG_INLINE void vf_put(float *p, vf a, int64_t n) {
    if (n == VF) vf_store(p, a);
    else vf_store_n(p, a, n);
}
#define HALF_GET_PUT(type)                                                  \
    CYG_INLINE vf vf_get_##type(const uint16_t *p, int64_t n) {             \
        uint16_t lanes[VF] = {0};                                           \
        if (n < VF) memcpy(lanes, p, (size_t)n * sizeof *p);                \
        return vf_load_##type(n < VF ? lanes : p);                          \
    }                                                                       \
    CYG_INLINE void vf_put_##type(uint16_t *p, vf a, int64_t n) {           \
        uint16_t lanes[VF];                                                 \
        vf_store_##type(n < VF ? lanes : p, a);                             \
        if (n < VF) memcpy(p, lanes, (size_t)n * sizeof *p);                \
    }
HALF_GET_PUT(f16)
HALF_GET_PUT(bf16)
#undef HALF_GET_PUT

/* x = n ln 2 + r with |r| <= ln 2 / 2; returns (e^r - 1) with small relative error and n as a float. x is held in -86.6..89: above, e^x is infinite,
   and below it would soon be subnormal, which costs a hundred cycles each. NaN passes through. */
#define EXP_LEAST -86.6f
CYG_INLINE vf vf_exp_parts(vf x, vf *n) {
    x = vf_min(vf_set1(89.0f), vf_max(vf_set1(EXP_LEAST), x));
    *n = vf_round(vf_mul(x, vf_set1(1.44269504f)));
    /* ln 2 in two parts; the first has few bits, so that n times it is exact. */
    vf r = vf_fnma(*n, vf_set1(-2.12194440e-4f), vf_fnma(*n, vf_set1(0.693359375f), x));
    vf p = vf_set1(0.00138145401f);
    p = vf_fma(p, r, vf_set1(0.00836874511f));
    p = vf_fma(p, r, vf_set1(0.0416683908f));
    p = vf_fma(p, r, vf_set1(0.166665204f));
    p = vf_fma(p, r, vf_set1(0.499999934f));
    return vf_fma(vf_mul(p, r), r, r);
}

/* e^x within 1.2 ulp: e^0 == 1; 0 below -86.6, e^-inf included. */
CYG_INLINE vf vf_exp(vf x) {
    vf n, e = vf_exp_parts(x, &n);
    return vf_select(vf_lt(x, vf_set1(EXP_LEAST)), vf_zero(), vf_ldexp(vf_add(e, vf_set1(1)), n));
}

/* 1 / (1 + e^-x). */
CYG_INLINE vf vf_sigmoid(vf x) {
    return vf_div(vf_set1(1), vf_add(vf_set1(1), vf_exp(vf_sub(vf_zero(), x))));
}

/* tanh |x| = e / (e + 2) with e = exp(2 |x|) - 1, which keeps the relative error small near zero too. */
CYG_INLINE vf vf_tanh(vf x) {
    vf n, bounded = vf_min(vf_set1(10), vf_abs(x));
    vf e = vf_exp_parts(vf_add(bounded, bounded), &n), power = vf_ldexp(vf_set1(1), n);
    e = vf_fma(e, power, vf_sub(power, vf_set1(1)));
    return vf_copysign(vf_div(e, vf_add(e, vf_set1(2))), x);
}

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|), where Phi(-t) = exp(-t^2 / 2) R(t) and R is a polynomial in 1 / (1 + 0.3 t).
   Absolute error below 2e-7 max(1, |x|); the left tail keeps about 4 digits of relative accuracy. */
CYG_INLINE vf vf_gelu(vf x) {
    vf t = vf_min(vf_set1(15), vf_abs(x)), s = vf_div(vf_set1(1), vf_fma(vf_set1(0.3f), t, vf_set1(1)));
    vf r = vf_set1(-0.0614302549f);
    r = vf_fma(r, s, vf_set1(0.144415696f));
    r = vf_fma(r, s, vf_set1(0.114362473f));
    r = vf_fma(r, s, vf_set1(0.0205803473f));
    r = vf_fma(r, s, vf_set1(0.176742216f));
    r = vf_fma(r, s, vf_set1(0.103607767f));
    r = vf_fma(r, s, vf_set1(0.00172142213f));
    vf tail = vf_mul(vf_mul(t, vf_exp(vf_mul(vf_mul(t, vf_set1(-0.5f)), t))), r);
    return vf_sub(vf_max(vf_zero(), x), tail);
}

/* The tanh form of GELU, 0.5 x (1 + tanh u) = x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3). */
CYG_INLINE vf vf_gelu_tanh(vf x) {
    vf u2 = vf_mul(x, vf_fma(vf_mul(x, x), vf_set1(2 * 0.7978845608f * 0.044715f), vf_set1(2 * 0.7978845608f)));
    return vf_mul(x, vf_sigmoid(u2));
}

#endif
