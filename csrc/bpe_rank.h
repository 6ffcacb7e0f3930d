/* The look-up of a pair of tokens in the merge table: inline, since merging is little else. */
#ifndef CYG_BPE_RANK_H
#define CYG_BPE_RANK_H

#include "bpe.h"

#define CYG_PAIR_EMPTY UINT64_MAX

/* The filter has 8 bits for each slot of the table. */
enum { CYG_PAIR_FILTER_BITS = 3 };

static inline uint64_t cyg_pair_key(int32_t left, int32_t right) { return (uint64_t)(uint32_t)left << 44 | (uint64_t)(uint32_t)right << 24; }

static inline uint64_t cyg_pair_hash(uint64_t key) { return (key >> 24) * UINT64_C(0x9E3779B97F4A7C15); }

static inline uint32_t cyg_rank_of(const cyg_bpe *bpe, int32_t left, int32_t right)
{
    uint64_t key = cyg_pair_key(left, right), hash = cyg_pair_hash(key), bit = hash >> (64 - bpe->pair_bits - CYG_PAIR_FILTER_BITS);
    if (!(bpe->pair_filter[bit >> 6] >> (bit & 63) & 1)) return CYG_NO_RANK;
    size_t mask = ((size_t)1 << bpe->pair_bits) - 1, slot = (size_t)(hash >> (64 - bpe->pair_bits));
    for (;; slot = (slot + 1) & mask) {
        uint64_t entry = bpe->pairs[slot];
        if (entry >> 24 == key >> 24) return (uint32_t)entry & CYG_BPE_MAX_MERGES;
        if (entry == CYG_PAIR_EMPTY) return CYG_NO_RANK;
    }
}

#endif
