/* What integer dot products with Advanced SIMD share: shapes of tiles, codes of activations, two four-bit weights of a byte. */
#ifndef CYG_DOT_SHARED_H
#define CYG_DOT_SHARED_H

#include "simd/vec_neon.h"
#include "simd/tile.h"

#define NR 16
#define F32_ROWS 6
#define F32_TILES TILES_6
#define F32_DEPTH 256
#define F32_WIDE 2
#define F32_SIDE(rows) ((rows) <= 2 ? 2 : 1)
#define INT_DEPTH 32

#define DOT_STEPS UNROLL

typedef int8x16_t dot4_weights;
typedef int8x16_t dot_codes;

CYG_INLINE dot_codes dot_codes_of(const int8_t *q) {
    int32_t four;
    memcpy(&four, q, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

CYG_INLINE void dot4_load(const uint8_t *w, dot4_weights *low, dot4_weights *high) {
    const uint8x16_t both = vld1q_u8(w);
    *low = vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15)));
    *high = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
}

CYG_INLINE void dot_store_codes(int8_t *q, vf codes) {
    const int16x4_t halves = vmovn_s32(vcvtq_s32_f32(codes));
    const int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
    vst1_lane_s32((int32_t *)q, vreinterpret_s32_s8(bytes), 0);
}

#endif
