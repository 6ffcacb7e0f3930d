/* Integer dot products (simd/tile.h) with AVX2. Unsigned times signed bytes add up in pairs to int16 without saturating: of eight-bit weights
   the sign moves to the activation (2 * 127 * 127 < 2^15), four-bit weights leave room for a whole group (8 * 2 * 15 * 127 < 2^15). */
#ifndef CYG_DOT_H
#define CYG_DOT_H

#include "simd/dot_avx2_shared.h"

#define DOT_FLIP 0
#define DOT_ORIGIN 12582912.0f /* bits of this float plus an integer below 2^22 are the bits of their sum */
#define DOT_ORIGIN_BITS 0x4b400000

typedef struct { __m256i magnitude, codes; } dot8_weights;
typedef __m256i dot8_sum; /* int32 */
typedef __m256i dot4_sum; /* int16 pairs */

CYG_INLINE dot8_weights dot8_load(const uint8_t *w) {
    const __m256i codes = _mm256_loadu_si256((const __m256i *)w);
    return (dot8_weights){_mm256_abs_epi8(codes), codes};
}
CYG_INLINE dot8_sum dot8_start(int32_t q_sum) {
    (void)q_sum;
    return _mm256_set1_epi32(DOT_ORIGIN_BITS);
}
CYG_INLINE dot8_sum dot8_step(dot8_sum sum, dot8_weights w, dot_codes q) {
    const __m256i pairs = _mm256_maddubs_epi16(w.magnitude, _mm256_sign_epi8(q, w.codes));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    IN_ORDER(sum);
    return sum;
}
CYG_INLINE vf dot8_end(dot8_sum sum) { return _mm256_castsi256_ps(sum); }

CYG_INLINE dot4_sum dot4_start(int32_t offset) {
    (void)offset;
    return _mm256_setzero_si256();
}
CYG_INLINE dot4_sum dot4_step(dot4_sum sum, dot4_weights w, dot_codes q) {
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, q));
    IN_ORDER(sum);
    return sum;
}
CYG_INLINE vf dot4_end(dot4_sum sum, int32_t offset) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)), _mm256_set1_epi32(DOT_ORIGIN_BITS + offset)));
}

#endif
