/* Decoding of GGUF blocks: see dequantize.h. Plain loops over fixed counts, written so that compilers vectorise them. */
#include "dequantize.h"

#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "blocks are read as little-endian memory"
#endif

/* All ones where the condition holds: selecting by masks keeps loops free of branches. */
static inline uint32_t mask_if(int condition) { return 0u - (uint32_t)condition; }

/* Exact for all 65,536 patterns; NaN keeps its payload. Needs no denormal arithmetic, so flush-to-zero modes cannot harm it. */
static inline float half_to_float(uint16_t half) {
    uint32_t exponent = half & 0x7C00u, magnitude = (uint32_t)(half & 0x7FFFu) << 13, bits;
    uint32_t rebias = (112u << 23) + (mask_if(exponent == 0x7C00u) & 112u << 23);
    float subnormal = (float)(half & 0x3FF) * 0x1p-24f, out;
    memcpy(&bits, &subnormal, 4);
    bits = (bits & mask_if(exponent == 0)) | ((magnitude + rebias) & mask_if(exponent != 0)) | (uint32_t)(half & 0x8000u) << 16;
    memcpy(&out, &bits, 4);
    return out;
}

static inline uint16_t load_u16(const uint8_t *p) {
    uint16_t value;
    memcpy(&value, p, 2);
    return value;
}

static inline uint32_t load_u32(const uint8_t *p) {
    uint32_t value;
    memcpy(&value, p, 4);
    return value;
}

static inline float load_half(const uint8_t *p) { return half_to_float(load_u16(p)); }

/* Plain types. */

static void dequantize_f32(const uint8_t *in, size_t n, float *out) {
    if (n) memcpy(out, in, n * 4);
}

static void dequantize_f16(const uint8_t *in, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) out[i] = load_half(in + 2 * i);
}

static void dequantize_bf16(const uint8_t *in, size_t n, float *out) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)load_u16(in + 2 * i) << 16;
        memcpy(out + i, &bits, 4);
    }
}

/* Blocks of 32: one half-precision scale, then (in the _1 types) a minimum, then the codes. */

/* Byte j holds codes j (low nibble) and j + 16. */
static inline void nibbles(const uint8_t *in, uint8_t *codes) {
    for (int j = 0; j < 16; j++) {
        codes[j] = in[j] & 15;
        codes[j + 16] = in[j] >> 4;
    }
}

/* As nibbles, with bit j of `high` on top of code j. */
static inline void nibbles_and_bit(const uint8_t *in, uint32_t high, uint8_t *codes) {
    nibbles(in, codes);
    for (int j = 0; j < 32; j++) codes[j] |= (uint8_t)((high >> j & 1) << 4);
}

static inline void scale_codes(const uint8_t *codes, int zero, float scale, float *out) {
    for (int j = 0; j < 32; j++) out[j] = (float)(codes[j] - zero) * scale;
}

static inline void scale_and_shift_codes(const uint8_t *codes, float scale, float minimum, float *out) {
    for (int j = 0; j < 32; j++) out[j] = (float)codes[j] * scale + minimum;
}

static void dequantize_q4_0(const uint8_t *in, size_t n, float *out) {
    uint8_t codes[32];
    for (; n--; in += 18, out += 32) {
        nibbles(in + 2, codes);
        scale_codes(codes, 8, load_half(in), out);
    }
}

static void dequantize_q4_1(const uint8_t *in, size_t n, float *out) {
    uint8_t codes[32];
    for (; n--; in += 20, out += 32) {
        nibbles(in + 4, codes);
        scale_and_shift_codes(codes, load_half(in), load_half(in + 2), out);
    }
}

static void dequantize_q5_0(const uint8_t *in, size_t n, float *out) {
    uint8_t codes[32];
    for (; n--; in += 22, out += 32) {
        nibbles_and_bit(in + 6, load_u32(in + 2), codes);
        scale_codes(codes, 16, load_half(in), out);
    }
}

static void dequantize_q5_1(const uint8_t *in, size_t n, float *out) {
    uint8_t codes[32];
    for (; n--; in += 24, out += 32) {
        nibbles_and_bit(in + 8, load_u32(in + 4), codes);
        scale_and_shift_codes(codes, load_half(in), load_half(in + 2), out);
    }
}

static void dequantize_q8_0(const uint8_t *in, size_t n, float *out) {
    for (; n--; in += 34, out += 32) {
        float scale = load_half(in);
        for (int j = 0; j < 32; j++) out[j] = (float)(int8_t)in[2 + j] * scale;
    }
}

/* Blocks of 256: groups of 16 or 32 whose small integer scales share a half-precision scale. */

/* The eight 6-bit scales and minimums of Q4_K and Q5_K: those of the first four groups whole, the others' split in nibbles and top bits. */
static inline void scales_and_minimums(const uint8_t *in, uint8_t *scales, uint8_t *minimums) {
    for (int j = 0; j < 4; j++) {
        scales[j] = in[j] & 63;
        minimums[j] = in[j + 4] & 63;
        scales[j + 4] = (uint8_t)((in[j + 8] & 15) | in[j] >> 6 << 4);
        minimums[j + 4] = (uint8_t)(in[j + 8] >> 4 | in[j + 4] >> 6 << 4);
    }
}

/* d, dmin, 12 bytes of scales, then 128 bytes: each run of 32 bytes holds one group in its low nibbles and the next in the high ones. */
static void unpack_q4_k(const uint8_t *in, size_t n, uint8_t *codes, float *scales, float *minimums) {
    uint8_t scale[8], minimum[8];
    for (; n--; in += 144, codes += 256, scales += 8, minimums += 8) {
        float d = load_half(in), dmin = load_half(in + 2);
        scales_and_minimums(in + 4, scale, minimum);
        for (int group = 0; group < 8; group++) {
            scales[group] = d * (float)scale[group];
            minimums[group] = -(dmin * (float)minimum[group]);
        }
        for (int group = 0; group < 8; group += 2) {
            const uint8_t *packed = in + 16 + 16 * group;
            for (int j = 0; j < 32; j++) {
                codes[32 * group + j] = packed[j] & 15;
                codes[32 * group + 32 + j] = packed[j] >> 4;
            }
        }
    }
}

static void dequantize_q4_k(const uint8_t *in, size_t n, float *out) {
    uint8_t codes[256];
    float scales[8], minimums[8];
    for (; n--; in += 144, out += 256) {
        unpack_q4_k(in, 1, codes, scales, minimums);
        for (int group = 0; group < 8; group++) scale_and_shift_codes(codes + 32 * group, scales[group], minimums[group], out + 32 * group);
    }
}

/* As Q4_K, with 32 bytes between scales and nibbles: bit g of byte j is the fifth bit of code j of group g. */
static void dequantize_q5_k(const uint8_t *in, size_t n, float *out) {
    uint8_t scale[8], minimum[8], codes[32];
    for (; n--; in += 176, out += 256) {
        float d = load_half(in), dmin = load_half(in + 2);
        scales_and_minimums(in + 4, scale, minimum);
        for (int group = 0; group < 8; group++) {
            const uint8_t *high = in + 16, *low = in + 48 + group / 2 * 32;
            for (int j = 0; j < 32; j++) codes[j] = (uint8_t)((low[j] >> group % 2 * 4 & 15) | (high[j] >> group & 1) << 4);
            scale_and_shift_codes(codes, d * (float)scale[group], -(dmin * (float)minimum[group]), out + 32 * group);
        }
    }
}

/* 16 bytes of scale (low nibble) and minimum, 64 bytes of codes, d, dmin. Bits 2s and 2s + 1 of byte 32h + j are code j of the run 4h + s of 32. */
static void dequantize_q2_k(const uint8_t *in, size_t n, float *out) {
    for (; n--; in += 84, out += 256) {
        float d = load_half(in + 80), dmin = load_half(in + 82);
        for (int group = 0; group < 16; group++) {
            const uint8_t *packed = in + 16 + group / 8 * 32 + group % 2 * 16;
            int shift = group / 2 % 4 * 2;
            float scale = d * (float)(in[group] & 15), minimum = dmin * (float)(in[group] >> 4);
            for (int j = 0; j < 16; j++) out[16 * group + j] = scale * (float)(packed[j] >> shift & 3) - minimum;
        }
    }
}

/* 32 bytes of high bits, 64 bytes of low codes laid out as in Q2_K, 12 bytes of 6-bit scales, d. A clear high bit takes 4 away. */
static void dequantize_q3_k(const uint8_t *in, size_t n, float *out) {
    for (; n--; in += 110, out += 256) {
        const uint8_t *packed = in + 96;
        float d = load_half(in + 108);
        for (int group = 0; group < 16; group++) {
            const uint8_t *high = in + group % 2 * 16, *low = in + 32 + group / 8 * 32 + group % 2 * 16;
            int run = group / 2, shift = run % 4 * 2;
            int scale = (packed[group % 8] >> group / 8 * 4 & 15) | (packed[8 + group % 4] >> group / 4 * 2 & 3) << 4;
            float factor = d * (float)(scale - 32);
            for (int j = 0; j < 16; j++) out[16 * group + j] = factor * (float)((low[j] >> shift & 3) + (high[j] >> run & 1) * 4 - 4);
        }
    }
}

/* 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed scales, d; each half of 128 codes has 64 and 32 bytes of them. */
static void dequantize_q6_k(const uint8_t *in, size_t n, float *out) {
    for (; n--; in += 210, out += 256) {
        float d = load_half(in + 208);
        for (int group = 0; group < 16; group++) {
            int half = group / 8, run = group / 2 % 4, place = group % 2 * 16;
            const uint8_t *low = in + 64 * half + run % 2 * 32 + place, *high = in + 128 + 32 * half + place;
            int low_shift = run / 2 * 4, high_shift = run * 2;
            float scale = d * (float)(int8_t)in[192 + group];
            for (int j = 0; j < 16; j++) {
                int code = (low[j] >> low_shift & 15) | (high[j] >> high_shift & 3) << 4;
                out[16 * group + j] = scale * (float)(code - 32);
            }
        }
    }
}

/* Unpacking without loss: a half-precision scale times a small integer is exact, and so is the sum of two such products. */

static void unpack_q4_0(const uint8_t *in, size_t n, uint8_t *codes, float *scales, float *minimums) {
    for (size_t i = 0; i < n; i++, in += 18) {
        scales[i] = load_half(in);
        minimums[i] = -8.0f * scales[i];
        nibbles(in + 2, codes + 32 * i);
    }
}

static void unpack_q4_1(const uint8_t *in, size_t n, uint8_t *codes, float *scales, float *minimums) {
    for (size_t i = 0; i < n; i++, in += 20) {
        scales[i] = load_half(in);
        minimums[i] = load_half(in + 2);
        nibbles(in + 4, codes + 32 * i);
    }
}

static void unpack_q8_0(const uint8_t *in, size_t n, int8_t *codes, float *scales) {
    for (size_t i = 0; i < n; i++, in += 34) {
        scales[i] = load_half(in);
        memcpy(codes + 32 * i, in + 2, 32);
    }
}

static void unpack_q5_0(const uint8_t *in, size_t n, int8_t *codes, float *scales) {
    uint8_t unsigned_codes[32];
    for (size_t i = 0; i < n; i++, in += 22) {
        scales[i] = load_half(in);
        nibbles_and_bit(in + 6, load_u32(in + 2), unsigned_codes);
        for (int j = 0; j < 32; j++) codes[32 * i + j] = (int8_t)(unsigned_codes[j] - 16);
    }
}

/* Non-linear 4-bit types: codes are places in this table. */
static const int8_t NONLINEAR[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static void unpack_iq4_nl(const uint8_t *in, size_t n, int8_t *codes, float *scales) {
    uint8_t places[32];
    for (size_t i = 0; i < n; i++, in += 18) {
        scales[i] = load_half(in);
        nibbles(in + 2, places);
        for (int j = 0; j < 32; j++) codes[32 * i + j] = NONLINEAR[places[j]];
    }
}

/* d, 16 bits of high scale bits (two a group), 4 bytes of low scale nibbles, then 8 groups as in IQ4_NL. */
static void unpack_iq4_xs(const uint8_t *in, size_t n, int8_t *codes, float *scales) {
    uint8_t places[32];
    for (; n--; in += 136, codes += 256, scales += 8) {
        float d = load_half(in);
        uint32_t high = load_u16(in + 2);
        for (int group = 0; group < 8; group++) {
            int scale = (in[4 + group / 2] >> group % 2 * 4 & 15) | (int)(high >> 2 * group & 3) << 4;
            scales[group] = d * (float)(scale - 32);
            nibbles(in + 8 + 16 * group, places);
            for (int j = 0; j < 32; j++) codes[32 * group + j] = NONLINEAR[places[j]];
        }
    }
}

static void dequantize_iq4_nl(const uint8_t *in, size_t n, float *out) {
    int8_t codes[32];
    float scale;
    for (; n--; in += 18, out += 32) {
        unpack_iq4_nl(in, 1, codes, &scale);
        for (int j = 0; j < 32; j++) out[j] = scale * (float)codes[j];
    }
}

static void dequantize_iq4_xs(const uint8_t *in, size_t n, float *out) {
    int8_t codes[256];
    float scales[8];
    for (; n--; in += 136, out += 256) {
        unpack_iq4_xs(in, 1, codes, scales);
        for (int j = 0; j < 256; j++) out[j] = scales[j / 32] * (float)codes[j];
    }
}

static const cyg_quant_type TYPES[] = {
    {"F32", 1, 4, dequantize_f32, NULL, NULL},
    {"F16", 1, 2, dequantize_f16, NULL, NULL},
    {"BF16", 1, 2, dequantize_bf16, NULL, NULL},
    {"Q4_0", 32, 18, dequantize_q4_0, unpack_q4_0, NULL},
    {"Q4_1", 32, 20, dequantize_q4_1, unpack_q4_1, NULL},
    {"Q5_0", 32, 22, dequantize_q5_0, NULL, unpack_q5_0},
    {"Q5_1", 32, 24, dequantize_q5_1, NULL, NULL},
    {"Q8_0", 32, 34, dequantize_q8_0, NULL, unpack_q8_0},
    {"Q2_K", 256, 84, dequantize_q2_k, NULL, NULL},
    {"Q3_K", 256, 110, dequantize_q3_k, NULL, NULL},
    {"Q4_K", 256, 144, dequantize_q4_k, unpack_q4_k, NULL},
    {"Q5_K", 256, 176, dequantize_q5_k, NULL, NULL},
    {"Q6_K", 256, 210, dequantize_q6_k, NULL, NULL},
    {"IQ4_NL", 32, 18, dequantize_iq4_nl, NULL, unpack_iq4_nl},
    {"IQ4_XS", 256, 136, dequantize_iq4_xs, NULL, unpack_iq4_xs},
};

const cyg_quant_type *cyg_quant_type_find(const char *name) {
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (strcmp(TYPES[i].name, name) == 0) return &TYPES[i];
    return NULL;
}
