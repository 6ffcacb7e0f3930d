/* GGUF element types: each row decodes blocks to float32, and to small integers with scales where that loses nothing.
 * Block layouts: the GGUF specification and the block structures of ggml (little-endian, packed, no alignment).
 *
 * All functions work on whole blocks, in order, on one thread; zero blocks are fine; input and output must not overlap.
 * Input needs no alignment, output needs that of its type. */
#ifndef CYG_DEQUANTIZE_H
#define CYG_DEQUANTIZE_H

#include <stddef.h>
#include <stdint.h>

#include "cyg_kernels.h" /* CYG_GROUP: weights that share a scale in the unpacked forms */

typedef struct cyg_quant_type {
    const char *name;
    int block_size; /* weights */
    int block_bytes;
    /* out[n_blocks * block_size] */
    void (*dequantize)(const uint8_t *blocks, size_t n_blocks, float *out);
    /* weight = scale * code + minimum, codes 0..15: codes[weights], scales[weights / 32], minimums[weights / 32]; NULL where it would round.
     * Equal to `dequantize` bit for bit (but for the sign of a zero), fused or not, as long as scales and minimums are finite. */
    void (*unpack_int4)(const uint8_t *blocks, size_t n_blocks, uint8_t *codes, float *scales, float *minimums);
    /* weight = scale * code: codes[weights], scales[weights / 32]; NULL where it would round. */
    void (*unpack_int8)(const uint8_t *blocks, size_t n_blocks, int8_t *codes, float *scales);
} cyg_quant_type;

/* The row of that name ("Q4_K", "F16" ...), or NULL. */
const cyg_quant_type *cyg_quant_type_find(const char *name);

#endif
