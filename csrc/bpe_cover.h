/* The tokens of a byte-level piece without merging it: found longest first, and taken only where merging is sure to give the same.
 *
 * A token comes about by a tree of merges whose ranks grow towards the root. Put such trees side by side: merging follows them all, in order of
 * rank, as long as no pair across a boundary has a smaller rank than the merges that take its ends away. Which pairs stand at a boundary at one
 * time or another is told by the right edge of the tree before it and the left edge of the one after, so each boundary is checked by itself:
 * the two parts of a merge when the tree of a token is made, two neighbouring tokens when a piece is covered. */
#ifndef CYG_BPE_COVER_H
#define CYG_BPE_COVER_H

#include "bpe.h"

enum { CYG_COVER_BYTES = 240 };

/* Sets bpe->cover from `count` merges (left, right, merged) in order of rank, after all tokens and cyg_bpe_finish(); leaves it NULL where the
 * vocabulary or the merges do not allow it. Returns 0, or -1 when memory is out. */
int cyg_bpe_add_cover(cyg_bpe *bpe, const int32_t *merges, size_t count);
void cyg_bpe_cover_free(struct cyg_bpe_cover *cover);

/* Two tokens that stood side by side at a boundary, and the ranks at which they went into others. */
typedef struct {
    int32_t a, b;
    uint32_t la, lb;
} cyg_edge;

/* A piece on its way. Covering goes by steps, each of which ends by asking the memory for what the next one reads, so that several pieces taken in
 * turns never wait: depth first, the longest token first, each only where no merge crosses its boundary with the one before. */
typedef struct {
    uint8_t bytes[CYG_COVER_BYTES + 16];
    size_t length, depth, count;
    int stage;
    unsigned budget;
    struct cyg_cover_place {
        uint8_t at, length; /* where the token of this depth begins, and the length to try next */
    } places[CYG_COVER_BYTES + 1];
    uint64_t key;
    size_t slot;
    int32_t found;
    size_t found_length;
    cyg_edge edge;
    int32_t ids[CYG_COVER_BYTES];
} cyg_cover;

/* Pairs of neighbours checked before, a table of the caller's scratch memory; NULL when memory is out. */
uint64_t *cyg_cover_crossings(cyg_bpe_scratch *scratch);

/* Both return 1 when the piece (of 1 to CYG_COVER_BYTES bytes) is done: then `count` ids are its own, or none where it must be merged. */
int cyg_cover_begin(const cyg_bpe *bpe, cyg_cover *run, const uint8_t *piece, size_t length);
int cyg_cover_step(const cyg_bpe *bpe, uint64_t *crossings, cyg_cover *run);

#endif
