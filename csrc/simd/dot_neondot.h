/* Integer dot products (simd/tile.h) with Advanced SIMD's dot product instructions (FEAT_DotProd): signed bytes, four steps of k a lane, summed in int32. */
#ifndef CYG_DOT_H
#define CYG_DOT_H

#include "simd/dot_neon_shared.h"

#define INT_ROWS 4
#define INT_TILES TILES_4

#define DOT_FLIP 0
#define DOT_ORIGIN 12582912.0f /* bits of this float plus an integer below 2^22 are the bits of their sum */
#define DOT_ORIGIN_BITS 0x4b400000

typedef int8x16_t dot8_weights;
typedef int32x4_t dot8_sum;
typedef int32x4_t dot4_sum;

CYG_INLINE dot8_weights dot8_load(const uint8_t *w) { return vreinterpretq_s8_u8(vld1q_u8(w)); }
CYG_INLINE dot8_sum dot8_start(int32_t q_sum) {
    (void)q_sum;
    return vdupq_n_s32(DOT_ORIGIN_BITS);
}
CYG_INLINE dot8_sum dot8_step(dot8_sum sum, dot8_weights w, dot_codes q) { return vdotq_s32(sum, w, q); }
CYG_INLINE vf dot8_end(dot8_sum sum) { return vreinterpretq_f32_s32(sum); }

CYG_INLINE dot4_sum dot4_start(int32_t offset) { return vdupq_n_s32(DOT_ORIGIN_BITS + offset); }
CYG_INLINE dot4_sum dot4_step(dot4_sum sum, dot4_weights w, dot_codes q) { return vdotq_s32(sum, w, q); }
CYG_INLINE vf dot4_end(dot4_sum sum, int32_t offset) {
    (void)offset;
    return vreinterpretq_f32_s32(sum);
}

#endif
