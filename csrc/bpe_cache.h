/* Pieces seen before and their ids: what makes encoding fast. Bounded, owned by one running call, never locked.
 *
 * Pieces of at most 15 bytes lie in two lines of two entries of a hash table, key and up to four ids inline. Where both are full, a new one pushes out the
 * oldest of one line or the other in turns: were it always the oldest of all, five pieces that come round again would never be found. Longer pieces and
 * more ids live in an arena; all is forgotten when that is full. */
#ifndef CYG_BPE_CACHE_H
#define CYG_BPE_CACHE_H

#include "bpe_piece.h"
#include "cyg_ids.h"
#include "cyg_table.h"

enum { CYG_SHORT_IDS = 4, CYG_LONG_MAX = 1024 };
enum { CYG_SHORT_BITS = 17, CYG_LONG_BITS = 17, CYG_LONG_WAYS = 4 };
enum { CYG_ID_BITS = 20, CYG_ID_MASK = (1 << CYG_ID_BITS) - 1, CYG_IN_ARENA = 0xFFF };

#if defined(__GNUC__) || defined(__clang__)
#define CYG_RARELY(x) __builtin_expect(!!(x), 0)
#define CYG_APART __attribute__((noinline))
#else
#define CYG_RARELY(x) (x)
#define CYG_APART
#endif

typedef struct {
    uint64_t low, high;          /* as those of the piece; 0: empty */
    uint32_t ids[CYG_SHORT_IDS]; /* 20 bits each; above the first one their number, or that they are more: then place in the arena and number follow */
} cyg_short_piece;

typedef struct {
    uint64_t hash;
    uint32_t offset; /* in the arena: the bytes, padded to 4, then the ids; 0: empty */
    uint16_t length, count;
} cyg_long_piece;

typedef struct {
    cyg_short_piece *shorts; /* two to a line, aligned to it */
    cyg_long_piece *longs;
    uint8_t *arena;
    uint32_t arena_used;
    unsigned turn;
} cyg_bpe_cache;

/* Makes the tables where there are none. Returns 0, or -1 when memory is out. */
int cyg_cache_ready(cyg_bpe_cache *cache);
void cyg_cache_free(cyg_bpe_cache *cache);

/* Keeps the ids of a piece that is not there; CYG_SHORT_IDS of them can be read in any case. */
void cyg_cache_keep(cyg_bpe_cache *cache, const cyg_piece *piece, const int32_t *ids, size_t count);
/* Appends the ids of a long piece. Returns 1, 0 where it is not there, -1 when memory is out. */
int cyg_cache_recall_long(const cyg_bpe_cache *cache, const cyg_piece *piece, cyg_ids *ids);

/* Finds the lines that may hold a short piece and asks the memory for the first. */
static inline void cyg_short_locate(const cyg_bpe_cache *cache, cyg_piece *piece)
{
    piece->line = cache->shorts + 2 * (cyg_piece_hash_short(piece) >> (64 - CYG_SHORT_BITS));
    CYG_PREFETCH(piece->line);
}

/* Line `line` (0 or 1) of the two. */
static inline cyg_short_piece *cyg_short_line(const cyg_piece *piece, uintptr_t line)
{
    return (cyg_short_piece *)((uintptr_t)piece->line ^ line * 2 * sizeof(cyg_short_piece));
}

/* The entry of a short piece in a line, or NULL. */
static inline const cyg_short_piece *cyg_short_in(const cyg_short_piece *e, const cyg_piece *piece)
{
    e += (size_t)(e[1].low == piece->low) & (size_t)(e[1].high == piece->high);
    return e->low == piece->low && e->high == piece->high ? e : NULL;
}

static inline const cyg_short_piece *cyg_short_find(const cyg_piece *piece)
{
    const cyg_short_piece *e = cyg_short_in(cyg_short_line(piece, 0), piece);
    return CYG_RARELY(!e) ? cyg_short_in(cyg_short_line(piece, 1), piece) : e;
}

/* Appends the ids of an entry: all four places are written, of which only the first ones count, without a branch on their number. */
static inline int cyg_short_append(const cyg_bpe_cache *cache, const cyg_short_piece *e, cyg_ids *ids)
{
    uint32_t count = e->ids[0] >> CYG_ID_BITS;
    if (CYG_RARELY(count == CYG_IN_ARENA)) {
        if (cyg_ids_reserve(ids, e->ids[2])) return -1;
        memcpy(ids->data + ids->size, cache->arena + e->ids[1], e->ids[2] * sizeof(int32_t));
        ids->size += e->ids[2];
        return 0;
    }
    if (CYG_RARELY(cyg_ids_reserve(ids, CYG_SHORT_IDS))) return -1;
    int32_t *out = ids->data + ids->size;
    for (int k = 0; k < CYG_SHORT_IDS; k++) out[k] = (int32_t)(e->ids[k] & CYG_ID_MASK);
    ids->size += count;
    return 0;
}

/* The entries that may hold a long piece, side by side. */
static inline cyg_long_piece *cyg_long_line(const cyg_bpe_cache *cache, const cyg_piece *piece)
{
    return cache->longs + (piece->low >> (64 - CYG_LONG_BITS) & ~(uint64_t)(CYG_LONG_WAYS - 1));
}

/* The entry that seems to be a long piece's, or NULL. */
static inline const cyg_long_piece *cyg_long_find(const cyg_bpe_cache *cache, const cyg_piece *piece)
{
    const cyg_long_piece *e = cyg_long_line(cache, piece);
    for (int k = 0; k < CYG_LONG_WAYS; k++)
        if (e[k].hash == piece->low && e[k].offset) return &e[k];
    return NULL;
}

#endif
