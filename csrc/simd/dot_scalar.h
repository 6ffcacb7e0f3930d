/* Integer dot products (simd/tile.h) in portable C. */
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

typedef struct { int8_t code[VF][4]; } dot8_weights;
typedef dot8_weights dot4_weights;
typedef const int8_t *dot_codes;
typedef struct { int32_t lane[VF]; } dot8_sum;
typedef dot8_sum dot4_sum;

CYG_INLINE dot_codes dot_codes_of(const int8_t *q) { return q; }

CYG_INLINE dot8_weights dot8_load(const uint8_t *w) {
    dot8_weights r;
    memcpy(&r, w, sizeof r);
    return r;
}
CYG_INLINE dot8_sum dot8_start(int32_t q_sum) {
    (void)q_sum;
    return (dot8_sum){{0}};
}
CYG_INLINE dot8_sum dot8_step(dot8_sum sum, dot8_weights w, dot_codes q) {
    EACH_LANE sum.lane[i] += w.code[i][0] * q[0] + w.code[i][1] * q[1] + w.code[i][2] * q[2] + w.code[i][3] * q[3];
    return sum;
}
CYG_INLINE vf dot8_end(dot8_sum sum) { LANEWISE(vf, (float)sum.lane[i]); }

CYG_INLINE void dot4_load(const uint8_t *w, dot4_weights *low, dot4_weights *high) {
    EACH_LANE {
        for (int j = 0; j < 4; j++) {
            low->code[i][j] = w[4 * i + j] & 15;
            high->code[i][j] = w[4 * i + j] >> 4;
        }
    }
}
CYG_INLINE dot4_sum dot4_start(int32_t offset) {
    (void)offset;
    return (dot4_sum){{0}};
}
CYG_INLINE dot4_sum dot4_step(dot4_sum sum, dot4_weights w, dot_codes q) { return dot8_step(sum, w, q); }
CYG_INLINE vf dot4_end(dot4_sum sum, int32_t offset) { LANEWISE(vf, (float)(sum.lane[i] + offset)); }

CYG_INLINE void dot_store_codes(int8_t *q, vf codes) { EACH_LANE q[i] = (int8_t)LANE(codes, i); }

#endif
