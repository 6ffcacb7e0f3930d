/* Integer dot products (simd/tile.h) with baseline Advanced SIMD: products of bytes in int16, added up in pairs to int32. Four-bit weights leave
   room for a whole group in int16 (8 * 15 * 127 < 2^15). */
#ifndef CYG_DOT_H
#define CYG_DOT_H

#include "simd/dot_neon_shared.h"

#define INT_ROWS 2
#define INT_TILES TILES_2

#define DOT_FLIP 0
#define DOT_ORIGIN 0.0f

typedef int8x16_t dot8_weights;
typedef int32x4x2_t dot8_sum; /* lanes 0 and 1, lanes 2 and 3: two halves of each lane's sum */
typedef int16x8x2_t dot4_sum; /* the same in four parts */

CYG_INLINE dot8_weights dot8_load(const uint8_t *w) { return vreinterpretq_s8_u8(vld1q_u8(w)); }
CYG_INLINE dot8_sum dot8_start(int32_t q_sum) {
    (void)q_sum;
    return (dot8_sum){{vdupq_n_s32(0), vdupq_n_s32(0)}};
}
CYG_INLINE dot8_sum dot8_step(dot8_sum sum, dot8_weights w, dot_codes q) {
    sum.val[0] = vpadalq_s16(sum.val[0], vmull_s8(vget_low_s8(w), vget_low_s8(q)));
    sum.val[1] = vpadalq_s16(sum.val[1], vmull_high_s8(w, q));
    return sum;
}
CYG_INLINE vf dot8_end(dot8_sum sum) { return vcvtq_f32_s32(vpaddq_s32(sum.val[0], sum.val[1])); }

CYG_INLINE dot4_sum dot4_start(int32_t offset) {
    (void)offset;
    return (dot4_sum){{vdupq_n_s16(0), vdupq_n_s16(0)}};
}
CYG_INLINE dot4_sum dot4_step(dot4_sum sum, dot4_weights w, dot_codes q) {
    sum.val[0] = vmlal_s8(sum.val[0], vget_low_s8(w), vget_low_s8(q));
    sum.val[1] = vmlal_high_s8(sum.val[1], w, q);
    return sum;
}
CYG_INLINE vf dot4_end(dot4_sum sum, int32_t offset) {
    const int32x4_t lanes = vpaddq_s32(vpaddlq_s16(sum.val[0]), vpaddlq_s16(sum.val[1]));
    return vcvtq_f32_s32(vaddq_s32(lanes, vdupq_n_s32(offset)));
}

#endif
