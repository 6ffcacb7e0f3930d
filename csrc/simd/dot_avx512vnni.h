/* Integer dot products (simd/tile.h) with AVX-512 VNNI: unsigned weights times signed activations, four steps of k a lane, summed in int32.
   Eight-bit weights are stored with 128 added; the sums start at what that adds. */
#ifndef CYG_DOT_H
#define CYG_DOT_H

#include "simd/dot_avx512_shared.h"

#define DOT_FLIP 0x80
#define DOT_ORIGIN 12582912.0f /* bits of this float plus an integer below 2^22 are the bits of their sum */
#define DOT_ORIGIN_BITS 0x4b400000

typedef __m512i dot8_weights;
typedef __m512i dot8_sum;
typedef __m512i dot4_sum;

CYG_INLINE dot8_weights dot8_load(const uint8_t *w) { return _mm512_loadu_si512(w); }
CYG_INLINE dot8_sum dot8_start(int32_t q_sum) { return _mm512_set1_epi32(DOT_ORIGIN_BITS - 128 * q_sum); }
CYG_INLINE dot8_sum dot8_step(dot8_sum sum, dot8_weights w, dot_codes q) { return _mm512_dpbusd_epi32(sum, w, q); }
CYG_INLINE vf dot8_end(dot8_sum sum) { return _mm512_castsi512_ps(sum); }

CYG_INLINE dot4_sum dot4_start(int32_t offset) { return _mm512_set1_epi32(DOT_ORIGIN_BITS + offset); }
CYG_INLINE dot4_sum dot4_step(dot4_sum sum, dot4_weights w, dot_codes q) { return _mm512_dpbusd_epi32(sum, w, q); }
CYG_INLINE vf dot4_end(dot4_sum sum, int32_t offset) {
    (void)offset;
    return _mm512_castsi512_ps(sum);
}

#endif
