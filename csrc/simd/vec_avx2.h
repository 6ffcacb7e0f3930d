/* The vector vocabulary (docs/add-isa.md) in AVX2, FMA and F16C: 8 floats. */
#ifndef CYG_VEC_H
#define CYG_VEC_H

#include <immintrin.h>

#include "simd/common.h"

#define VF 8
#define VF_SUMS 8 /* running sums that fit the registers beside their operands */
typedef __m256 vf;
typedef __m256 vm; /* all bits of a lane set or none */

static const int32_t cyg_first_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};

CYG_INLINE vf vf_zero(void) { return _mm256_setzero_ps(); }
CYG_INLINE vf vf_set1(float x) { return _mm256_set1_ps(x); }
CYG_INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
CYG_INLINE void vf_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
CYG_INLINE vm vm_first(int64_t n) { return _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(cyg_first_lanes + 8 - n))); }
CYG_INLINE vf vf_load_n(const float *p, int64_t n) { return _mm256_maskload_ps(p, _mm256_castps_si256(vm_first(n))); }
CYG_INLINE void vf_store_n(float *p, vf a, int64_t n) { _mm256_maskstore_ps(p, _mm256_castps_si256(vm_first(n)), a); }

CYG_INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
CYG_INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
CYG_INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
CYG_INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
CYG_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
CYG_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
CYG_INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
CYG_INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
CYG_INLINE vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
CYG_INLINE vf vf_copysign(vf a, vf b) { return _mm256_or_ps(vf_abs(a), _mm256_and_ps(b, _mm256_set1_ps(-0.0f))); }
CYG_INLINE vf vf_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
CYG_INLINE vf vf_ldexp(vf a, vf n) { /* 2 a * 2^(n - 1): the power is a normal number up to n = 128 */
    return vf_mul(vf_add(a, a), _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(126)), 23)));
}

CYG_INLINE vm vf_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
CYG_INLINE vf vf_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }

CYG_INLINE float vf_reduce_add(vf a) {
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

CYG_INLINE float vf_reduce_max(vf a) {
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

CYG_INLINE vf vf_swap(vf a, int stride) {
    return stride == 1 ? _mm256_permute_ps(a, 0xb1) : stride == 2 ? _mm256_permute_ps(a, 0x4e) : _mm256_permute2f128_ps(a, a, 1);
}
CYG_INLINE vf vf_top(vf a, vf b) { return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b))); }
CYG_INLINE void vf_quarters(vf v[4]) {
    const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(v[0], v[1])), b = _mm256_castps_pd(_mm256_unpackhi_ps(v[0], v[1]));
    const __m256d c = _mm256_castps_pd(_mm256_unpacklo_ps(v[2], v[3])), d = _mm256_castps_pd(_mm256_unpackhi_ps(v[2], v[3]));
    v[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
    v[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
    v[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
    v[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
}

CYG_INLINE vf vf_load_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
CYG_INLINE void vf_store_f16(uint16_t *p, vf a) { _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)); }
CYG_INLINE vf vf_load_bf16(const uint16_t *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
CYG_INLINE void vf_store_bf16(uint16_t *p, vf a) {
    __m256i u = _mm256_castps_si256(a), nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(_mm256_set1_epi32(0x7fff), _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1))));
    rounded = _mm256_blendv_epi8(rounded, _mm256_or_si256(u, _mm256_set1_epi32(0x400000)), nan);
    rounded = _mm256_srli_epi32(rounded, 16);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)));
}

#endif
