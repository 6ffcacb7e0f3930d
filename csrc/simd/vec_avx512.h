/* The vector vocabulary (docs/add-isa.md) in AVX-512 F, BW, DQ, VL: 16 floats, masks in mask registers. */
#ifndef CYG_VEC_H
#define CYG_VEC_H

#include <immintrin.h>

#include "simd/common.h"

#define VF 16
#define VF_SUMS 16 /* running sums that fit the registers beside their operands */
typedef __m512 vf;
typedef __mmask16 vm;

CYG_INLINE vf vf_zero(void) { return _mm512_setzero_ps(); }
CYG_INLINE vf vf_set1(float x) { return _mm512_set1_ps(x); }
CYG_INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
CYG_INLINE void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
CYG_INLINE vm vm_first(int64_t n) { return (vm)((1u << n) - 1); }
CYG_INLINE vf vf_load_n(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(vm_first(n), p); }
CYG_INLINE void vf_store_n(float *p, vf a, int64_t n) { _mm512_mask_storeu_ps(p, vm_first(n), a); }

CYG_INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
CYG_INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
CYG_INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
CYG_INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
CYG_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
CYG_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
CYG_INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
CYG_INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
CYG_INLINE vf vf_abs(vf a) { return _mm512_abs_ps(a); }
CYG_INLINE vf vf_copysign(vf a, vf b) { return _mm512_or_ps(vf_abs(a), _mm512_and_ps(b, _mm512_set1_ps(-0.0f))); }
CYG_INLINE vf vf_round(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
CYG_INLINE vf vf_ldexp(vf a, vf n) { return _mm512_scalef_ps(a, n); }

CYG_INLINE vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
CYG_INLINE vf vf_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }

CYG_INLINE float vf_reduce_add(vf a) {
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

CYG_INLINE float vf_reduce_max(vf a) {
    __m256 h = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

CYG_INLINE vf vf_swap(vf a, int stride) {
    return stride == 1   ? _mm512_permute_ps(a, 0xb1)
           : stride == 2 ? _mm512_permute_ps(a, 0x4e)
           : stride == 4 ? _mm512_shuffle_f32x4(a, a, 0xb1)
                         : _mm512_shuffle_f32x4(a, a, 0x4e);
}
CYG_INLINE vf vf_top(vf a, vf b) { return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b))); }

CYG_INLINE void vf_quarters(vf v[4]) {
    const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(v[0], v[1])), b = _mm512_castps_pd(_mm512_unpackhi_ps(v[0], v[1]));
    const __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(v[2], v[3])), d = _mm512_castps_pd(_mm512_unpackhi_ps(v[2], v[3]));
    v[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
    v[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    v[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
    v[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
}

CYG_INLINE vf vf_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
CYG_INLINE void vf_store_f16(uint16_t *p, vf a) { _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
CYG_INLINE vf vf_load_bf16(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
CYG_INLINE void vf_store_bf16(uint16_t *p, vf a) {
    __m512i u = _mm512_castps_si512(a);
    __m512i rounded = _mm512_add_epi32(u, _mm512_add_epi32(_mm512_set1_epi32(0x7fff), _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1))));
    rounded = _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), u, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}

#endif
