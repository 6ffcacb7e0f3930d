/* Pieces seen before and their ids: what makes encoding fast. Bounded, owned by one running call, never locked.
 *
 * Pieces of at most 15 bytes lie in two lines of two entries of a hash table, key and up to four ids inline. Where both are full, a new one pushes out the
 * oldest of one line or the other in turns: were it always the oldest of all, five pieces that come round again would never be found. Longer pieces and
 * more ids live in an arena; all is forgotten when that is full. */
#ifndef CYG_BPE_CACHE_H
#define CYG_BPE_CACHE_H

#include "bpe.h"
#include "scan_split.h"

enum { CYG_SHORT_BYTES = 15, CYG_SHORT_IDS = 4, CYG_LONG_MAX = 1024 };

typedef struct {
    uint64_t low, high;          /* the bytes, and in the top byte their number */
    uint32_t ids[CYG_SHORT_IDS]; /* 20 bits each; above the first one their number, or that they are more: then place in the arena and number follow */
} cyg_short_piece;

typedef struct {
    uint64_t hash;
    uint32_t offset; /* in the arena: the bytes, padded to 4, then the ids; 0: empty */
    uint16_t length, count;
} cyg_long_piece;

typedef struct {
    cyg_short_piece *lines; /* two to a line, aligned to it */
    cyg_long_piece *longs;
    uint8_t *arena;
    uint32_t arena_used;
    unsigned turn;
    cyg_bpe_scratch scratch;
    cyg_classes classes;
} cyg_bpe_space;

void cyg_bpe_space_free(cyg_bpe_space *space);

/* Appends the ids of a stretch of valid UTF-8, cut by the rule. Returns 0, or -1 when memory is out. */
int cyg_bpe_encode(const cyg_bpe *bpe, const cyg_split_rule *rule, cyg_bpe_space *space, const uint8_t *text, size_t length, cyg_ids *ids);

/* The same for pieces whose ends are known. */
int cyg_bpe_encode_pieces(const cyg_bpe *bpe, cyg_bpe_space *space, const uint8_t *text, size_t length, size_t begin, const size_t *ends, size_t count,
                          cyg_ids *ids);

#endif
