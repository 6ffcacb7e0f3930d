/* What integer dot products with 512-bit vectors share: shapes of tiles, codes of activations, two four-bit weights of a byte. */
#ifndef CYG_DOT_SHARED_H
#define CYG_DOT_SHARED_H

#include "simd/vec_avx512.h"
#include "simd/tile.h"

#define NR 32
#define F32_ROWS 14
#define F32_TILES TILES_14
#define F32_DEPTH 384
#define F32_WIDE 4
#define F32_SIDE(rows) ((rows) == 1 ? 4 : 2)
#define INT_DEPTH 32
#define INT_ROWS 8
#define INT_TILES TILES_8

#define DOT_STEPS UNROLL

typedef __m512i dot4_weights;
typedef __m512i dot_codes;

CYG_INLINE dot_codes dot_codes_of(const int8_t *q) {
    int32_t four;
    memcpy(&four, q, 4);
    return _mm512_set1_epi32(four);
}

CYG_INLINE void dot4_load(const uint8_t *w, dot4_weights *low, dot4_weights *high) {
    const __m512i both = _mm512_loadu_si512(w), mask = _mm512_set1_epi8(15);
    *low = _mm512_and_si512(both, mask);
    *high = _mm512_and_si512(_mm512_srli_epi32(both, 4), mask);
}

CYG_INLINE void dot_store_codes(int8_t *q, vf codes) { _mm_storeu_si128((__m128i *)q, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(codes))); }

#endif
