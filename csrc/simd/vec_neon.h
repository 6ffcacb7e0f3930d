/* The vector vocabulary (docs/add-isa.md) in AArch64 Advanced SIMD: 4 floats. */
#ifndef CYG_VEC_H
#define CYG_VEC_H

#include <arm_neon.h>

#include "simd/common.h"

#define VF 4
#define VF_SUMS 16 /* running sums that fit the registers beside their operands */
typedef float32x4_t vf;
typedef uint32x4_t vm; /* all bits of a lane set or none */

static const uint32_t cyg_first_lanes[8] = {~0u, ~0u, ~0u, ~0u, 0, 0, 0, 0};

CYG_INLINE vf vf_zero(void) { return vdupq_n_f32(0); }
CYG_INLINE vf vf_set1(float x) { return vdupq_n_f32(x); }
CYG_INLINE vf vf_load(const float *p) { return vld1q_f32(p); }
CYG_INLINE void vf_store(float *p, vf a) { vst1q_f32(p, a); }
CYG_INLINE vm vm_first(int64_t n) { return vld1q_u32(cyg_first_lanes + 4 - n); }
CYG_INLINE vf vf_load_n(const float *p, int64_t n) {
    float lanes[4] = {0, 0, 0, 0};
    for (int64_t i = 0; i < n; i++) lanes[i] = p[i];
    return vld1q_f32(lanes);
}
CYG_INLINE void vf_store_n(float *p, vf a, int64_t n) {
    float lanes[4];
    vst1q_f32(lanes, a);
    for (int64_t i = 0; i < n; i++) p[i] = lanes[i];
}

CYG_INLINE vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
CYG_INLINE vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
CYG_INLINE vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
CYG_INLINE vf vf_div(vf a, vf b) { return vdivq_f32(a, b); }
CYG_INLINE vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
CYG_INLINE vf vf_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
CYG_INLINE vf vf_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
CYG_INLINE vf vf_min(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
CYG_INLINE vf vf_abs(vf a) { return vabsq_f32(a); }
CYG_INLINE vf vf_copysign(vf a, vf b) { return vbslq_f32(vdupq_n_u32(0x80000000u), b, a); }
CYG_INLINE vf vf_round(vf a) { return vrndnq_f32(a); }
CYG_INLINE vf vf_ldexp(vf a, vf n) { /* 2 a * 2^(n - 1): the power is a normal number up to n = 128 */
    return vf_mul(vf_add(a, a), vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(126)), 23)));
}

CYG_INLINE vm vf_lt(vf a, vf b) { return vcltq_f32(a, b); }
CYG_INLINE vf vf_select(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }

CYG_INLINE float vf_reduce_add(vf a) { return vaddvq_f32(a); }
CYG_INLINE float vf_reduce_max(vf a) {
    vf b = vf_max(a, vextq_f32(a, a, 2));
    return vgetq_lane_f32(vf_max(b, vextq_f32(b, b, 1)), 0);
}

CYG_INLINE vf vf_swap(vf a, int stride) { return stride == 1 ? vrev64q_f32(a) : vextq_f32(a, a, 2); }
CYG_INLINE vf vf_top(vf a, vf b) { return vreinterpretq_f32_u32(vmaxq_u32(vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b))); }
CYG_INLINE void vf_quarters(vf v[4]) {
    const float32x4x2_t ab = vtrnq_f32(v[0], v[1]), cd = vtrnq_f32(v[2], v[3]);
    v[0] = vcombine_f32(vget_low_f32(ab.val[0]), vget_low_f32(cd.val[0]));
    v[1] = vcombine_f32(vget_low_f32(ab.val[1]), vget_low_f32(cd.val[1]));
    v[2] = vcombine_f32(vget_high_f32(ab.val[0]), vget_high_f32(cd.val[0]));
    v[3] = vcombine_f32(vget_high_f32(ab.val[1]), vget_high_f32(cd.val[1]));
}

CYG_INLINE vf vf_load_f16(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
CYG_INLINE void vf_store_f16(uint16_t *p, vf a) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(a))); }
CYG_INLINE vf vf_load_bf16(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
CYG_INLINE void vf_store_bf16(uint16_t *p, vf a) {
    uint32x4_t u = vreinterpretq_u32_f32(a);
    uint32x4_t rounded = vaddq_u32(u, vaddq_u32(vdupq_n_u32(0x7fff), vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1))));
    rounded = vbslq_u32(vceqq_f32(a, a), rounded, vorrq_u32(u, vdupq_n_u32(0x400000)));
    vst1_u16(p, vshrn_n_u32(rounded, 16));
}

#endif
