/* A piece of text as the tables of pieces and tokens look it up. */
#ifndef CYG_BPE_PIECE_H
#define CYG_BPE_PIECE_H

#include <string.h>

#include "scan_classes.h"

enum { CYG_SHORT_BYTES = 15 };

typedef struct {
    const uint8_t *start;
    size_t length;
    uint64_t low, high; /* of a short piece: its bytes, and in the top byte their number; of a long one its hash, in low */
    void *line; /* of a short piece: the first place in the cache where it may lie */
} cyg_piece;

#define M(n) (UINT64_MAX >> (64 - 8 * (n)))
static const uint64_t cyg_low_mask[16] = {0, M(1), M(2), M(3), M(4), M(5), M(6), M(7), M(8), M(8), M(8), M(8), M(8), M(8), M(8), M(8)};
static const uint64_t cyg_high_mask[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, M(1), M(2), M(3), M(4), M(5), M(6), M(7)};
#undef M

static inline void cyg_hash_mix(uint64_t *a, uint64_t *b, const uint8_t *p)
{
    *a = (*a ^ cyg_load64(p)) * UINT64_C(0xD6E8FEB86659FD93);
    *b = (*b ^ cyg_load64(p + 8)) * UINT64_C(0xBF58476D1CE4E5B9);
    *a ^= *a >> 29;
    *b ^= *b >> 31;
}

/* At least 16 bytes, by 16, the last ones overlapping those before. */
static inline void cyg_piece_hash_long(cyg_piece *piece)
{
    const uint8_t *p = piece->start;
    size_t n = piece->length;
    uint64_t a = n, b = UINT64_C(0x9E3779B97F4A7C15);
    for (; n > 16; p += 16, n -= 16) cyg_hash_mix(&a, &b, p);
    cyg_hash_mix(&a, &b, p + n - 16);
    a = (a ^ (b << 17 | b >> 47)) * UINT64_C(0x94D049BB133111EB);
    piece->low = a ^ a >> 31;
}

/* At most CYG_SHORT_BYTES; 16 can be read at p. */
static inline void cyg_piece_key_short(cyg_piece *piece, const uint8_t *p)
{
    piece->low = cyg_load64(p) & cyg_low_mask[piece->length];
    piece->high = (cyg_load64(p + 8) & cyg_high_mask[piece->length]) | (uint64_t)piece->length << 56;
}

static inline uint64_t cyg_piece_hash_short(const cyg_piece *piece)
{
    uint64_t h = (piece->low ^ (piece->high << 29 | piece->high >> 35)) * UINT64_C(0x9E3779B97F4A7C15);
    return (h ^ h >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
}

static inline uint64_t cyg_piece_hash(const cyg_piece *piece) { return piece->length > CYG_SHORT_BYTES ? piece->low : cyg_piece_hash_short(piece); }

/* Of bytes behind which nothing may be read. */
static inline cyg_piece cyg_piece_of(const uint8_t *bytes, size_t length)
{
    cyg_piece piece = {.start = bytes, .length = length};
    uint8_t copy[16] = {0};
    if (length > CYG_SHORT_BYTES)
        cyg_piece_hash_long(&piece);
    else
        cyg_piece_key_short(&piece, memcpy(copy, bytes, length));
    return piece;
}

#endif
