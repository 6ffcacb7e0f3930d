/* Integer dot products (simd/tile.h) with AVX-VNNI: unsigned weights times signed activations, four steps of k a lane, summed in int32.
   Eight-bit weights are stored with 128 added; the sums start at what that adds. */
#ifndef CYG_DOT_H
#define CYG_DOT_H

#include "simd/vec_avx2.h"
#include "simd/tile.h"

#define NR 16
#define F32_ROWS 6
#define F32_TILES TILES_6
#define F32_DEPTH 256
#define F32_WIDE 4
#define F32_SIDE(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#define INT_ROWS 4
#define INT_TILES TILES_4
#define INT_DEPTH 32

#define DOT_FLIP 0x80
#define DOT_STEPS UNROLL
#define DOT_ORIGIN 12582912.0f /* bits of this float plus an integer below 2^22 are the bits of their sum */
#define DOT_ORIGIN_BITS 0x4b400000

typedef __m256i dot8_weights;
typedef __m256i dot4_weights;
typedef __m256i dot_codes;
typedef __m256i dot8_sum;
typedef __m256i dot4_sum;

CYG_INLINE dot_codes dot_codes_of(const int8_t *q) {
    int32_t four;
    memcpy(&four, q, 4);
    return _mm256_set1_epi32(four);
}

CYG_INLINE dot8_weights dot8_load(const uint8_t *w) { return _mm256_loadu_si256((const __m256i *)w); }
CYG_INLINE dot8_sum dot8_start(int32_t q_sum) { return _mm256_set1_epi32(DOT_ORIGIN_BITS - 128 * q_sum); }
CYG_INLINE dot8_sum dot8_step(dot8_sum sum, dot8_weights w, dot_codes q) { return _mm256_dpbusd_avx_epi32(sum, w, q); }
CYG_INLINE vf dot8_end(dot8_sum sum) { return _mm256_castsi256_ps(sum); }

CYG_INLINE void dot4_load(const uint8_t *w, dot4_weights *low, dot4_weights *high) {
    const __m256i both = _mm256_loadu_si256((const __m256i *)w), mask = _mm256_set1_epi8(15);
    *low = _mm256_and_si256(both, mask);
    *high = _mm256_and_si256(_mm256_srli_epi32(both, 4), mask);
}
CYG_INLINE dot4_sum dot4_start(int32_t offset) { return _mm256_set1_epi32(DOT_ORIGIN_BITS + offset); }
CYG_INLINE dot4_sum dot4_step(dot4_sum sum, dot4_weights w, dot_codes q) { return _mm256_dpbusd_avx_epi32(sum, w, q); }
CYG_INLINE vf dot4_end(dot4_sum sum, int32_t offset) {
    (void)offset;
    return _mm256_castsi256_ps(sum);
}

CYG_INLINE void dot_store_codes(int8_t *q, vf codes) {
    const __m256i lanes = _mm256_cvtps_epi32(codes);
    const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    _mm_storel_epi64((__m128i *)q, _mm_packs_epi16(halves, halves));
}

#endif
