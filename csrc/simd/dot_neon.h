/* Integer dot products (simd/tile.h) with baseline Advanced SIMD: products of bytes in int16, added up in pairs to int32. Four-bit weights leave
   room for a whole group in int16 (8 * 15 * 127 < 2^15). */
#ifndef CYG_DOT_H
#define CYG_DOT_H

#include "simd/vec_neon.h"
#include "simd/tile.h"

#define NR 16
#define F32_ROWS 6
#define F32_TILES TILES_6
#define F32_DEPTH 256
#define F32_WIDE 2
#define F32_SIDE(rows) ((rows) <= 2 ? 2 : 1)
#define INT_ROWS 2
#define INT_TILES TILES_2
#define INT_DEPTH 32

#define DOT_FLIP 0
#define DOT_STEPS UNROLL
#define DOT_ORIGIN 0.0f

typedef int8x16_t dot8_weights;
typedef int8x16_t dot4_weights;
typedef int8x16_t dot_codes;
typedef int32x4x2_t dot8_sum; /* lanes 0 and 1, lanes 2 and 3: two halves of each lane's sum */
typedef int16x8x2_t dot4_sum; /* the same in four parts */

CYG_INLINE dot_codes dot_codes_of(const int8_t *q) {
    int32_t four;
    memcpy(&four, q, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

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

CYG_INLINE void dot4_load(const uint8_t *w, dot4_weights *low, dot4_weights *high) {
    const uint8x16_t both = vld1q_u8(w);
    *low = vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15)));
    *high = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
}
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

CYG_INLINE void dot_store_codes(int8_t *q, vf codes) {
    const int16x4_t halves = vmovn_s32(vcvtq_s32_f32(codes));
    const int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
    vst1_lane_s32((int32_t *)q, vreinterpret_s32_s8(bytes), 0);
}

#endif
