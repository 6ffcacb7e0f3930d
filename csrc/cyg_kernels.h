/* The table of kernels: one per instruction set, chosen once at import (cyg_cpu.h).

   Every kernel computes one share of one operation on the calling thread: it starts no thread, allocates nothing, keeps no state.
   Sizes are int64_t and may be zero (then nothing is read or written). Strides count elements, not bytes. Pointers are float32 unless
   said otherwise; "rows" are contiguous along their last axis. Where a result row depends on one input row only, its bits do not depend on
   how many other rows or panels the call has: that is what makes logits equal alone, in a batch, cached and recomputed.

   Glossary: M rows (tokens), N output features, K input features, D head size, F feed-forward size. */
#ifndef CYG_KERNELS_H
#define CYG_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CYG_GROUP 32      /* weights (and activations) that share one scale in the integer kinds */
#define CYG_KEY_BLOCK 32  /* keys in one block of key/value memory */
#define CYG_KEY_CHUNK 256 /* keys that share one softmax; attention splits keys at its multiples only */
#define CYG_ATTENTION_ROWS 64 /* rows (query tokens times heads) that the attention kernel works on together */

/* ---- packed weights -------------------------------------------------------------------------------------------------------------------

   A weight matrix W (N, K) is cut along N into panels of `nr` rows (the last one padded with zeros), each stored in the order in which the
   product kernels read it: along K, `nr` output features side by side. K is padded to a multiple of CYG_GROUP in the integer kinds.
   A panel is self-contained (codes and scales together) and starts 64-byte aligned; panel p lies at data + p * panel_bytes(kind, K).

     CYG_F32, CYG_F16, CYG_BF16   the values; products accumulate in float32, one fused multiply-add a step, k ascending
     CYG_I8    w = scale * q, q in -127..127, scale float16 per group
     CYG_I8H   the same of the Hadamard transform of each full group (hadamard.inl.c), to be multiplied with activations in that basis
     CYG_I4    w = scale * (q - 8), q in 0..15, scale float16 per group
     CYG_I4M   w = scale * q + minimum, q in 0..15, scale and minimum float16 per group

   The integer kinds multiply with activations quantised by quantize_rows to int8 per group of CYG_GROUP: exact int32 sums within a group (no
   saturation anywhere), then float32, groups ascending: acc = fma(float(sum) * weight_scale, activation_scale, acc), where the sum of CYG_I4 counts
   q - 8, and for CYG_I4M then acc = fma(minimum, activation_scale * float(sum of activation codes), acc). */
enum cyg_weight_kind { CYG_F32, CYG_F16, CYG_BF16, CYG_I8, CYG_I8H, CYG_I4, CYG_I4M, CYG_WEIGHT_KINDS };

/* How activations come to a product: as they are, or in int8 codes per group, of the values or of their Hadamard transform. */
enum cyg_basis { CYG_VALUES, CYG_CODES, CYG_HADAMARD };

/* A share of y = alpha * (x W^T + bias) (+ y): rows 0..m of x, panels first_panel..last_panel (exclusive) of W.

   Good shares: with few rows (up to 4), any run of panels of 32 KB or more, as each panel is read once, from end to end. With many rows, about 96 to
   112 (near a multiple of the 14, 8 and 6 rows of a tile) by as many panels as the balance between threads allows, at best 4 or more: a kernel keeps
   a block of the panel in the first-level cache and a block of x in the second-level cache while they meet. */
struct cyg_product {
    const void *weight;       /* the packed matrix, panel 0 */
    int64_t n, k;             /* features of the whole matrix */
    int64_t first_panel, last_panel;
    int64_t m;                /* rows */
    const float *x;           /* float kinds: (m, k) with row stride ldx */
    int64_t ldx;
    const int8_t *q;          /* integer kinds, from quantize_rows: codes (m, kp), kp = k rounded up to CYG_GROUP */
    const float *q_scale;     /* (m, kp / CYG_GROUP) */
    const int32_t *q_sum;     /* (m, kp / CYG_GROUP): sum of the codes of the group */
    const float *bias;        /* (n) or NULL */
    float alpha;
    int accumulate;           /* 0: y is overwritten; 1: added to */
    float *y;                 /* (m, n) with row stride ldy; only columns of the given panels are touched */
    int64_t ldy;
};

/* ---- attention ------------------------------------------------------------------------------------------------------------------------

   Keys and values live in blocks of CYG_KEY_BLOCK positions; `blocks[j]` is the base of the block of keys 32 j .. 32 j + 31 and k_offset, v_offset
   (in elements from the base) lead to this layer and key head. Inside, keys are stored transposed, (D, 32), so that scores of 32 keys are made by
   broadcasts of the query, and values as (32, D). Elements are float32 or float16 (kv_kind). Slots past `keys` hold anything finite or not: they are
   never used in a result.

   For query token i (absolute index first_query + i among the keys) and head h:
     s_j = scale * q.k_j;  if softcap > 0: s_j = softcap * tanh(s_j / softcap);
     s_j += relative[h * relative_stride + (j - position_i)]     if relative  (points at distance 0; negative indices are valid)
     s_j += key_bias[h * key_bias_stride + j]                    if key_bias
     s_j += bias[h * bias_head_stride + i * bias_token_stride + j]  if bias
     allowed keys: j < keys; causal: j <= position_i; window > 0: |position_i - j| < window
     o = sum_j softmax(s)_j v_j, a softmax of its own over each chunk of CYG_KEY_CHUNK keys, chunks joined in ascending order; a row without
     any allowed key gives zeros. */
enum cyg_kv_kind { CYG_KV_F32, CYG_KV_F16 };

struct cyg_attention {
    enum cyg_kv_kind kv_kind;
    const void *const *blocks;
    int64_t k_offset, v_offset;
    int64_t keys;
    int64_t first_query;
    int64_t tokens;           /* query tokens of this share */
    int heads;                /* query heads of this share, all reading the same key head */
    int head_dim;             /* D, 1..512 */
    const float *q;           /* q[i * q_token_stride + h * q_head_stride + d] */
    int64_t q_token_stride, q_head_stride;
    float *out;               /* same form */
    int64_t out_token_stride, out_head_stride;
    float scale, softcap;
    int causal;
    int64_t window;
    const float *relative;
    int64_t relative_stride;
    const float *key_bias;
    int64_t key_bias_stride;
    const float *bias;
    int64_t bias_head_stride, bias_token_stride;
    float *parts;             /* room for CYG_ATTENTION_ROWS * D floats; needed by `attention` where there are more than CYG_KEY_CHUNK keys */
};

/* ---- the rest -------------------------------------------------------------------------------------------------------------------------- */
enum cyg_activation { CYG_IDENTITY, CYG_RELU, CYG_GELU, CYG_GELU_TANH, CYG_GELU_QUICK, CYG_SILU, CYG_TANH, CYG_SIGMOID, CYG_RELU2, CYG_ACTIVATIONS };

struct cyg_kernels {
    const char *name; /* "scalar", "avx2", "avx2vnni", "avx512", "avx512vnni", "neon", "neondot" */
    int width;        /* floats in a vector */
    int nr;           /* rows of W in a panel, a multiple of width */

    /* Bytes of one packed panel. */
    size_t (*panel_bytes)(enum cyg_weight_kind kind, int64_t k);
    /* Packs one panel of a float kind from `rows` <= nr rows of w (row stride ldw). */
    void (*pack_float)(enum cyg_weight_kind kind, const float *w, int64_t ldw, int64_t rows, int64_t k, void *panel);
    /* Packs one panel of an integer kind from codes (rows, k) one byte each (int8 for CYG_I8 and CYG_I8H, uint8 0..15 otherwise) and scales, minima
       (rows, ceil(k / CYG_GROUP)); minima only for CYG_I4M. */
    void (*pack_codes)(enum cyg_weight_kind kind, const uint8_t *codes, const float *scales, const float *minima, int64_t rows, int64_t k, void *panel);
    /* Row `row` of a packed matrix as k floats (embedding lookup). */
    void (*unpack_row)(enum cyg_weight_kind kind, const void *weight, int64_t k, int64_t row, float *out);
    /* One product per weight kind. */
    void (*product[CYG_WEIGHT_KINDS])(const struct cyg_product *share);
    /* Activations to int8 per group: scale = max|x| * (1 / 127), q = round-half-even(x * (127 / max|x|)). A group with nothing above 2^-100 counts as zero, with
       scale 0; NaN or infinity make the scale NaN, so that they show in the result instead of vanishing. Codes past k are 0. `basis` CYG_HADAMARD: of the
       Hadamard transform of each full group, whose factor is part of the scale. */
    void (*quantize_rows)(enum cyg_basis basis, const float *x, int64_t ldx, int64_t m, int64_t k, int8_t *q, float *scale, int32_t *sum);
    /* Weights to canonical codes (rows, k) and scales (and minima) per group, as pack_codes takes them. */
    void (*quantize_weights)(enum cyg_weight_kind kind, const float *w, int64_t ldw, int64_t rows, int64_t k, uint8_t *codes, float *scales, float *minima);

    void (*attention)(const struct cyg_attention *share);
    /* The same in two steps, so that chunks of keys can be shares of different threads: attention_part writes what a share makes of one chunk into `parts`,
       (tokens, heads, D + 2) floats; attention_join joins chunks 0 .. chunks - 1 that lie one after another. The bits are those of `attention`. */
    void (*attention_part)(const struct cyg_attention *share, int64_t chunk, float *parts);
    void (*attention_join)(const struct cyg_attention *share, int64_t chunks, float *parts);
    /* Writes one token's key and value of one head into slot 0..31 of its block; k and v point at this layer's and head's part of the block. Returns
       whether a finite number became infinite in float16. */
    int (*store_kv)(enum cyg_kv_kind kind, const float *key, const float *value, int head_dim, int slot, void *k, void *v);

    /* y = (x - mean) / sqrt(var + eps) * weight + bias, biased variance; weight and bias may be NULL; in place allowed. */
    void (*layer_norm)(const float *x, int64_t ldx, int64_t m, int64_t d, const float *weight, const float *bias, float eps, float *y, int64_t ldy);
    /* y = x / sqrt(mean(x^2) + eps) * weight; in place allowed. */
    void (*rms_norm)(const float *x, int64_t ldx, int64_t m, int64_t d, const float *weight, float eps, float *y, int64_t ldy);
    /* y = f(x) elementwise; in place allowed. */
    void (*activate)(enum cyg_activation f, const float *x, int64_t n, float *y);
    /* y = f(gate) * up, rows of d; y may be gate or up. */
    void (*gate)(enum cyg_activation f, const float *gate, int64_t ldg, const float *up, int64_t ldu, int64_t m, int64_t d, float *y, int64_t ldy);
    /* Rotates the first 2 * half elements of `heads` vectors (stride elements apart) by angles given as cos, sin (half): pairs (i, i + half), or
       (2i, 2i + 1) if interleaved; (a, b) -> (a cos - b sin, b cos + a sin). In place. */
    void (*rotate)(float *x, int64_t heads, int64_t stride, int64_t half, int interleaved, const float *cos, const float *sin);
    /* y += a * x. */
    void (*axpy)(int64_t n, float a, const float *x, float *y);
    /* y = x * y elementwise. */
    void (*multiply)(int64_t n, const float *x, float *y);
    /* Softmax of each row of (m, n) in place; `mask` (m, n) bytes, nonzero = allowed, or NULL; a row without allowed entries becomes zeros. */
    void (*softmax)(float *x, int64_t ldx, const uint8_t *mask, int64_t ldm, int64_t m, int64_t n);
    /* x - log(sum(exp(x))) of each row, in place. */
    void (*log_softmax)(float *x, int64_t ldx, int64_t m, int64_t n);
    /* x = cap * tanh(x / cap), in place. */
    void (*softcap)(int64_t n, float cap, float *x);
    /* Index of the largest element, the first of equals; NaN never wins; -1 if n is 0 or all are NaN. */
    int64_t (*argmax)(int64_t n, const float *x);

    /* Conversions; to narrower types rounding is to nearest even. */
    void (*f16_to_f32)(const uint16_t *x, int64_t n, float *y);
    void (*f32_to_f16)(const float *x, int64_t n, uint16_t *y);
    void (*bf16_to_f32)(const uint16_t *x, int64_t n, float *y);
    void (*f32_to_bf16)(const float *x, int64_t n, uint16_t *y);
};

#ifdef __cplusplus
}
#endif
#endif
