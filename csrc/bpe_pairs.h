/* The table of merges: by left and right token, when they merge and to what.
 *
 * A pair is multiplied by an odd number, modulo its own size: the upper bits say in which line it lies, the lower ones are its mark. As it may lie in one of
 * the next lines, the mark has some bits of the line too, so that it tells the pair in all of those.
 *
 * A merge is a number that is larger the earlier it comes, with room for a place in a piece; 0 is none. It is large enough to be a normal float too:
 * those are ordered as their bits are, and their maximum is one instruction everywhere. */
#ifndef CYG_BPE_PAIRS_H
#define CYG_BPE_PAIRS_H

#include "bpe_lines.h"

enum { CYG_PLACE_BITS = 6, CYG_BPE_MAX_MERGES = (1 << 24) - 1, CYG_LAST_MERGE = 1 << 23 };

typedef struct {
    cyg_line *lines;
    int32_t *merged; /* by rank: the token that comes about */
    unsigned id_bits, line_bits, mark_bits;
} cyg_pairs;

/* From `count` merges (left, right, merged) in order of rank, of ids up to `largest`; of a pair that comes twice the last counts.
 * Returns 0, or -1 when memory is out. */
int cyg_pairs_init(cyg_pairs *pairs, const int32_t *merges, size_t count, int32_t largest);
void cyg_pairs_free(cyg_pairs *pairs);

static inline uint32_t cyg_merge_of_rank(uint32_t rank) { return CYG_LAST_MERGE + ((CYG_BPE_MAX_MERGES - rank) << CYG_PLACE_BITS); }
static inline uint32_t cyg_merge_rank(uint32_t merge) { return CYG_BPE_MAX_MERGES - ((merge - CYG_LAST_MERGE) >> CYG_PLACE_BITS); }

/* Where a pair lies, if anywhere. */
typedef struct {
    const cyg_line *line;
    uint32_t mark;
} cyg_pair_place;

static inline cyg_pair_place cyg_pair_locate(const cyg_pairs *pairs, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << pairs->id_bits | (uint32_t)right;
    uint64_t mixed = pair * UINT64_C(0x9E3779B97F4A7C15) & ((UINT64_C(1) << 2 * pairs->id_bits) - 1);
    return (cyg_pair_place){pairs->lines + (mixed >> (2 * pairs->id_bits - pairs->line_bits)), (uint32_t)(mixed & ((UINT64_C(1) << pairs->mark_bits) - 1))};
}

/* The merge of a pair, its place empty, or 0. */
static inline uint32_t cyg_pair_merge(cyg_pair_place at) { return cyg_lines_value(at.line, at.mark); }

#endif
