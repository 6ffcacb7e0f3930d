/* What every vector header needs: inlining that holds without optimisation flags, and copies of memory between types. */
#ifndef CYG_SIMD_COMMON_H
#define CYG_SIMD_COMMON_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cyg_kernels.h"

#ifdef _MSC_VER
#define CYG_INLINE static __forceinline
#else
#define CYG_INLINE static inline __attribute__((always_inline))
#endif

/* Brings a cache line as far as the second-level cache; a hint that may do nothing. */
#if defined(__GNUC__)
#define CYG_EXPECT(p) __builtin_prefetch(p, 0, 2)
#else
#define CYG_EXPECT(p) ((void)(p))
#endif

CYG_INLINE uint32_t bits_of_float(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

CYG_INLINE float float_of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Scalar conversions, the same bits as the vector ones: rounding to nearest even, subnormals kept, NaN stays a quiet NaN. */
CYG_INLINE float f16_widen(uint16_t h) {
    /* The product moves the exponent's bias and makes subnormals normal; without a branch, so that loops of it become vectors. */
    uint32_t magnitude = h & 0x7fff, special = magnitude >= 0x7c00 ? 0x7f800000 : 0;
    return float_of_bits((uint32_t)(h & 0x8000) << 16 | bits_of_float(float_of_bits(magnitude << 13) * 0x1p112f) | special);
}

CYG_INLINE uint16_t f16_narrow(float x) {
    uint32_t u = bits_of_float(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and above round to infinity */
    if (magnitude < 0x38800000) return (uint16_t)(sign | (bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000)); /* subnormal: the sum rounds */
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
}

CYG_INLINE float bf16_widen(uint16_t h) {
    return float_of_bits((uint32_t)h << 16);
}

CYG_INLINE uint16_t bf16_narrow(float x) {
    uint32_t u = bits_of_float(x);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#endif
