/* The vector vocabulary (docs/add-isa.md) in portable C: four lanes as plain loops, which compilers turn into what the baseline has.
   vf_fma rounds twice here: a fused operation would be a library call on a CPU without one. */
#ifndef CYG_VEC_H
#define CYG_VEC_H

#include "simd/common.h"

#define VF 4
#define VF_SUMS 8 /* running sums that fit the registers beside their operands */
#if defined(__GNUC__)
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vm __attribute__((vector_size(16))); /* all bits of a lane set or none */
#define LANE(v, i) ((v)[i])
#else
typedef struct { float lane[VF]; } vf;
typedef struct { int32_t lane[VF]; } vm;
#define LANE(v, i) ((v).lane[i])
#endif

#define EACH_LANE for (int i = 0; i < VF; i++)
#define LANEWISE(type, expression) type r = {0}; EACH_LANE LANE(r, i) = (expression); return r

CYG_INLINE vf vf_set1(float x) { LANEWISE(vf, x); }
CYG_INLINE vf vf_zero(void) { return vf_set1(0); }
CYG_INLINE vf vf_load(const float *p) { vf r; memcpy(&r, p, sizeof r); return r; }
CYG_INLINE void vf_store(float *p, vf a) { memcpy(p, &a, sizeof a); }
CYG_INLINE vm vm_first(int64_t n) { LANEWISE(vm, -(i < n)); }
CYG_INLINE vf vf_load_n(const float *p, int64_t n) { LANEWISE(vf, i < n ? p[i] : 0); }
CYG_INLINE void vf_store_n(float *p, vf a, int64_t n) { for (int i = 0; i < n; i++) p[i] = LANE(a, i); }

CYG_INLINE vf vf_add(vf a, vf b) { LANEWISE(vf, LANE(a, i) + LANE(b, i)); }
CYG_INLINE vf vf_sub(vf a, vf b) { LANEWISE(vf, LANE(a, i) - LANE(b, i)); }
CYG_INLINE vf vf_mul(vf a, vf b) { LANEWISE(vf, LANE(a, i) * LANE(b, i)); }
CYG_INLINE vf vf_div(vf a, vf b) { LANEWISE(vf, LANE(a, i) / LANE(b, i)); }
CYG_INLINE vf vf_fma(vf a, vf b, vf c) { return vf_add(vf_mul(a, b), c); }
CYG_INLINE vf vf_fnma(vf a, vf b, vf c) { return vf_sub(c, vf_mul(a, b)); }
CYG_INLINE vf vf_max(vf a, vf b) { LANEWISE(vf, LANE(a, i) > LANE(b, i) ? LANE(a, i) : LANE(b, i)); }
CYG_INLINE vf vf_min(vf a, vf b) { LANEWISE(vf, LANE(a, i) < LANE(b, i) ? LANE(a, i) : LANE(b, i)); }
CYG_INLINE vf vf_abs(vf a) { LANEWISE(vf, float_of_bits(bits_of_float(LANE(a, i)) & 0x7fffffff)); }
CYG_INLINE vf vf_copysign(vf a, vf b) { LANEWISE(vf, float_of_bits((bits_of_float(LANE(a, i)) & 0x7fffffff) | (bits_of_float(LANE(b, i)) & 0x80000000))); }
CYG_INLINE vf vf_round(vf a) { /* |a| < 2^22 here: adding and taking away 1.5 * 2^23 leaves the nearest even integer */
    return vf_sub(vf_add(a, vf_set1(12582912.0f)), vf_set1(12582912.0f));
}
CYG_INLINE vf vf_ldexp(vf a, vf n) {
    /* 2 a * 2^(n - 1): the power is a normal number up to n = 128. Adding 1.5 * 2^23 leaves n in the low bits, for NaN too without trapping. */
    LANEWISE(vf, (LANE(a, i) + LANE(a, i)) * float_of_bits((bits_of_float(LANE(n, i) + 12582912.0f) + 126) << 23));
}

CYG_INLINE vm vf_lt(vf a, vf b) { LANEWISE(vm, -(LANE(a, i) < LANE(b, i))); }
CYG_INLINE vf vf_select(vm m, vf a, vf b) { LANEWISE(vf, LANE(m, i) ? LANE(a, i) : LANE(b, i)); }

CYG_INLINE float vf_reduce_add(vf a) { return (LANE(a, 0) + LANE(a, 2)) + (LANE(a, 1) + LANE(a, 3)); }
CYG_INLINE float vf_reduce_max(vf a) {
    float m = LANE(a, 0);
    for (int i = 1; i < VF; i++) m = LANE(a, i) > m ? LANE(a, i) : m;
    return m;
}

CYG_INLINE vf vf_swap(vf a, int stride) { LANEWISE(vf, LANE(a, i ^ stride)); }
CYG_INLINE vf vf_top(vf a, vf b) { LANEWISE(vf, bits_of_float(LANE(a, i)) > bits_of_float(LANE(b, i)) ? LANE(a, i) : LANE(b, i)); }
CYG_INLINE void vf_quarters(vf v[4]) {
    const vf was[4] = {v[0], v[1], v[2], v[3]};
    for (int j = 0; j < 4; j++) EACH_LANE LANE(v[j], i) = LANE(was[i], j);
}

CYG_INLINE vf vf_load_f16(const uint16_t *p) { LANEWISE(vf, f16_widen(p[i])); }
CYG_INLINE void vf_store_f16(uint16_t *p, vf a) { EACH_LANE p[i] = f16_narrow(LANE(a, i)); }
CYG_INLINE vf vf_load_bf16(const uint16_t *p) { LANEWISE(vf, bf16_widen(p[i])); }
CYG_INLINE void vf_store_bf16(uint16_t *p, vf a) { EACH_LANE p[i] = bf16_narrow(LANE(a, i)); }

#endif
