/* Merging a piece of few symbols one merge at a time, so that several pieces can take turns: each waits for its two new pairs while others merge.
 *
 * Symbols keep their places; a merge leaves the place of its right part empty. Nothing depends on where it happens, so that there is no branch but the end. */
#ifndef CYG_BPE_FEW_H
#define CYG_BPE_FEW_H

#include "bpe.h"
#include "cyg_table.h"
#include "scan_classes.h"

enum { CYG_FEW = 1 << CYG_PLACE_BITS, CYG_FEW_STEP = 16 };

typedef struct {
    /* By place: the merge of the symbol there with the next one, and how far the place is from the last; 0: none, or not known yet. */
    uint32_t merge[CYG_FEW + CYG_FEW_STEP];
    int32_t id[CYG_FEW];
    uint32_t first;    /* the merge chosen */
    uint64_t taken;    /* a bit for each place that has a symbol */
    size_t count;      /* of symbols at first */
    unsigned at, left; /* the symbol merged last and the one before */
    cyg_pair_place with_left, with_right; /* where the merges of its pairs lie */
    uint32_t has_left, has_right;         /* all bits set where there is such a pair, else 0 */
} cyg_few;

/* Takes the first symbols of a byte-level piece and asks the memory for their pairs. Returns 0 where they are too many or a byte has none. */
int cyg_few_begin(const cyg_bpe *bpe, cyg_few *f, const cyg_piece *piece);
/* Looks their merges up; to be called before the first choice. */
void cyg_few_look_up(const cyg_bpe *bpe, cyg_few *f, const cyg_piece *piece);

static inline uint32_t cyg_merge_at(uint32_t merge, unsigned place) { return merge | (CYG_FEW - 1 - place); }

/* After the merges of the pairs of all symbols are set. */
static inline void cyg_few_ready(const cyg_pairs *pairs, cyg_few *f, size_t count)
{
    memset(f->merge + count - 1, 0, CYG_FEW_STEP * sizeof *f->merge);
    f->taken = UINT64_MAX >> (CYG_FEW - count);
    f->count = count;
    f->at = f->left = (unsigned)count - 1;
    f->with_left = f->with_right = (cyg_pair_place){pairs->lines, 0};
    f->has_left = f->has_right = 0;
}

static inline uint32_t cyg_larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* The merge that comes first of those that are known. */
static inline uint32_t cyg_few_first(const cyg_few *f)
{
#ifdef CYG_SSE2
    __m128 first = _mm_setzero_ps();
    for (size_t i = 0; i < f->count; i += CYG_FEW_STEP) {
        const float *m = (const float *)(const void *)(f->merge + i);
        first = _mm_max_ps(first, _mm_max_ps(_mm_max_ps(_mm_loadu_ps(m), _mm_loadu_ps(m + 4)), _mm_max_ps(_mm_loadu_ps(m + 8), _mm_loadu_ps(m + 12))));
    }
    first = _mm_max_ps(first, _mm_movehl_ps(first, first));
    return (uint32_t)_mm_cvtsi128_si32(_mm_castps_si128(_mm_max_ss(first, _mm_shuffle_ps(first, first, 1))));
#else
    uint32_t first = 0;
    for (size_t i = 0; i < f->count; i++) first = cyg_larger(first, f->merge[i]);
    return first;
#endif
}

/* Finds the merge that comes first, from what the memory has sent. Returns 0 where there is none. */
static inline int cyg_few_choose(const cyg_pairs *pairs, cyg_few *f)
{
    uint32_t with_left = cyg_merge_at(cyg_pair_merge(f->with_left), f->left) & f->has_left;
    uint32_t with_right = cyg_merge_at(cyg_pair_merge(f->with_right), f->at) & f->has_right;
    f->first = cyg_larger(cyg_few_first(f), cyg_larger(with_left, with_right));
    f->merge[f->left] = with_left;
    f->merge[f->at] = with_right;
    if (f->first < CYG_LAST_MERGE) return 0;
    CYG_PREFETCH(&pairs->merged[cyg_merge_rank(f->first)]);
    return 1;
}

/* Makes that merge and asks the memory for the pairs that come about. */
static inline void cyg_few_merge(const cyg_pairs *pairs, cyg_few *f)
{
    unsigned at = CYG_FEW - 1 - (f->first & (CYG_FEW - 1)), gone = at + 1 + cyg_trailing_zeros(f->taken >> at >> 1);
    f->taken &= ~(UINT64_C(1) << gone);
    int32_t id = f->id[at] = pairs->merged[cyg_merge_rank(f->first)];
    uint64_t before = f->taken & ((UINT64_C(1) << at) - 1), after = f->taken >> at >> 1;
    unsigned left = cyg_highest_bit(before | 1), right = (at + 1 + cyg_trailing_zeros(after | UINT64_C(1) << 63)) & (CYG_FEW - 1);
    f->merge[left] = f->merge[at] = f->merge[gone] = 0;
    f->at = at;
    f->left = left;
    f->has_left = 0 - (uint32_t)(before != 0);
    f->has_right = 0 - (uint32_t)(after != 0);
    f->with_left = cyg_pair_locate(pairs, f->id[left], id);
    f->with_right = cyg_pair_locate(pairs, id, f->id[right]);
    CYG_PREFETCH(f->with_left.line);
    CYG_PREFETCH(f->with_right.line);
}

static inline void cyg_few_merge_all(const cyg_pairs *pairs, cyg_few *f)
{
    while (cyg_few_choose(pairs, f)) cyg_few_merge(pairs, f);
}

/* Writes the ids that are left and returns how many. */
static inline size_t cyg_few_end(const cyg_few *f, int32_t *ids)
{
    size_t n = 0;
    for (uint64_t taken = f->taken; taken; taken &= taken - 1) ids[n++] = f->id[cyg_trailing_zeros(taken)];
    return n;
}

#endif
