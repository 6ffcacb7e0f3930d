/* What integer dot products with 256-bit vectors share: shapes of tiles, codes of activations, two four-bit weights of a byte. */
#ifndef CYG_DOT_SHARED_H
#define CYG_DOT_SHARED_H

#include "simd/vec_avx2.h"
#include "simd/tile.h"

#define NR 16
#define F32_ROWS 6
#define F32_TILES TILES_6
#define F32_DEPTH 256
#define F32_WIDE 4
#define F32_SIDE(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#define INT_DEPTH 32
#define INT_ROWS 4
#define INT_TILES TILES_4

#define DOT_STEPS UNROLL

typedef __m256i dot4_weights;
typedef __m256i dot_codes;

CYG_INLINE dot_codes dot_codes_of(const int8_t *q) {
    int32_t four;
    memcpy(&four, q, 4);
    return _mm256_set1_epi32(four);
}

CYG_INLINE void dot4_load(const uint8_t *w, dot4_weights *low, dot4_weights *high) {
    const __m256i both = _mm256_loadu_si256((const __m256i *)w), mask = _mm256_set1_epi8(15);
    *low = _mm256_and_si256(both, mask);
    *high = _mm256_and_si256(_mm256_srli_epi32(both, 4), mask);
}

CYG_INLINE void dot_store_codes(int8_t *q, vf codes) {
    const __m256i lanes = _mm256_cvtps_epi32(codes);
    const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    _mm_storel_epi64((__m128i *)q, _mm_packs_epi16(halves, halves));
}

#endif
