/* Integer dot products (simd/tile.h) in portable C, on floats: a group's sum stays below 32 * 127 * 127 < 2^24, so every step is exact. */
#ifndef CYG_DOT_H
#define CYG_DOT_H

#include "simd/vec_scalar.h"
#include "simd/tile.h"

#define NR 8
#define F32_ROWS 4
#define F32_TILES TILES_4
#define F32_DEPTH 256
#define F32_WIDE 4
#define F32_SIDE(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#define INT_ROWS 2
#define INT_TILES TILES_2
#define INT_DEPTH 32

#define DOT_FLIP 0
#define DOT_STEPS
#define DOT_ORIGIN 0.0f

/* Byte j of every four: bits are moved up and down again as the sign must follow. */
CYG_INLINE vf bytes_of(const uint8_t *w, int j) {
#if defined(__GNUC__)
    vm lanes;
    memcpy(&lanes, w, sizeof lanes);
    return __builtin_convertvector(lanes << 8 * (3 - j) >> 24, vf);
#else
    LANEWISE(vf, (int8_t)w[4 * i + j]);
#endif
}

typedef struct { vf step[4]; } dot8_weights;
typedef dot8_weights dot4_weights;
typedef const int8_t *dot_codes;
typedef vf dot8_sum;
typedef vf dot4_sum;

CYG_INLINE dot_codes dot_codes_of(const int8_t *q) { return q; }

CYG_INLINE dot8_weights dot8_load(const uint8_t *w) {
    dot8_weights wide;
    for (int j = 0; j < 4; j++) wide.step[j] = bytes_of(w, j);
    return wide;
}
CYG_INLINE dot8_sum dot8_start(int32_t q_sum) {
    (void)q_sum;
    return vf_zero();
}
CYG_INLINE dot8_sum dot8_step(dot8_sum sum, dot8_weights w, dot_codes q) {
    for (int j = 0; j < 4; j++) sum = vf_fma(w.step[j], vf_set1(q[j]), sum);
    return sum;
}
CYG_INLINE vf dot8_end(dot8_sum sum) { return sum; }

CYG_INLINE void dot4_load(const uint8_t *w, dot4_weights *low, dot4_weights *high) {
    uint8_t halves[2][4 * VF];
    for (int i = 0; i < 4 * VF; i++) {
        halves[0][i] = w[i] & 15;
        halves[1][i] = w[i] >> 4;
    }
    *low = dot8_load(halves[0]);
    *high = dot8_load(halves[1]);
}
CYG_INLINE dot4_sum dot4_start(int32_t offset) { return vf_set1((float)offset); }
CYG_INLINE dot4_sum dot4_step(dot4_sum sum, dot4_weights w, dot_codes q) { return dot8_step(sum, w, q); }
CYG_INLINE vf dot4_end(dot4_sum sum, int32_t offset) {
    (void)offset;
    return sum;
}

CYG_INLINE void dot_store_codes(int8_t *q, vf codes) { EACH_LANE q[i] = (int8_t)LANE(codes, i); }

#endif
