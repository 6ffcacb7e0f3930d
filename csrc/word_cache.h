/* Words seen before and their ids, owned by one running call and never locked.
 *
 * Words of at most 15 bytes and 7 ids lie in a direct-mapped table, key and ids inline; a new word pushes the old one of its place out.
 * Longer ones, up to CYG_LONG_BYTES, keep bytes and ids in an arena that is emptied when full. */
#ifndef CYG_WORD_CACHE_H
#define CYG_WORD_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cyg_ids.h"

enum { CYG_SHORT_BYTES = 15, CYG_SHORT_IDS = 7, CYG_SHORT_BITS = 17, CYG_LONG_BYTES = 200, CYG_LONG_BITS = 16, CYG_WORD_SLACK = 16 };
#define CYG_ARENA_SIZE ((uint32_t)4 << 20)

typedef struct {
    uint64_t low, high;         /* the bytes; in the top byte their number plus one, and a mark of the caller's; 0: empty */
    int32_t ids[CYG_SHORT_IDS], count;
} cyg_short_word;

typedef struct {
    uint64_t hash;
    uint32_t place; /* in the arena: the ids, then the bytes; 0: empty */
    uint16_t size, count;
} cyg_long_word;

typedef struct {
    cyg_short_word *shorts;
    cyg_long_word *longs;
    uint8_t *arena;
    uint32_t used;
} cyg_words;

/* One word to look up: size bytes, of which CYG_WORD_SLACK can be read in any case, and a mark that belongs to the key. */
typedef struct {
    const uint8_t *bytes;
    size_t size;
    int mark;
    uint64_t low, high; /* key of a short word; hash of a long one in low */
    void *place;        /* its place in a table, or 0 where it is too long */
} cyg_word;

#define CYG_LOW_BYTES(n) (UINT64_MAX >> (64 - 8 * (n)))

static inline void cyg_words_free(cyg_words *words)
{
    free(words->shorts);
    free(words->longs);
    free(words->arena);
    memset(words, 0, sizeof *words);
}

/* Returns 0, or -1 when memory is out. */
static inline int cyg_words_init(cyg_words *words)
{
    words->shorts = (cyg_short_word *)calloc((size_t)1 << CYG_SHORT_BITS, sizeof(cyg_short_word));
    words->longs = (cyg_long_word *)calloc((size_t)1 << CYG_LONG_BITS, sizeof(cyg_long_word));
    words->arena = (uint8_t *)malloc(CYG_ARENA_SIZE);
    words->used = 8;
    if (words->shorts && words->longs && words->arena)
        return 0;
    cyg_words_free(words);
    return -1;
}

static inline uint64_t cyg_word_mix(uint64_t h)
{
    h *= UINT64_C(0x9E3779B97F4A7C15);
    return (h ^ h >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
}

static inline uint64_t cyg_word_load(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Fills in key and place, and asks the memory for the place. */
static inline void cyg_word_locate(const cyg_words *words, cyg_word *word)
{
    size_t size = word->size;
    uint64_t low = cyg_word_load(word->bytes), high = cyg_word_load(word->bytes + 8), tag = word->mark ? 32 : 0;
    if (size <= CYG_SHORT_BYTES) {
        low = size >= 8 ? low : size ? low & CYG_LOW_BYTES(size) : 0;
        high = size > 8 ? high & CYG_LOW_BYTES(size - 8) : 0;
        high |= (size + 1 + tag) << 56;
        word->place = words->shorts + (cyg_word_mix(low ^ (high << 29 | high >> 35)) >> (64 - CYG_SHORT_BITS));
    } else if (size <= CYG_LONG_BYTES) {
        uint64_t h = cyg_word_mix(size + tag) ^ cyg_word_load(word->bytes + size - 8);
        for (size_t i = 0; i + 8 <= size; i += 8)
            h = cyg_word_mix(h ^ cyg_word_load(word->bytes + i));
        low = h ^ h >> 31;
        word->place = words->longs + (low & (((size_t)1 << CYG_LONG_BITS) - 1));
    } else {
        word->place = 0;
    }
    word->low = low;
    word->high = high;
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(word->place);
#endif
}

/* Appends the ids of a located word if it is there. Returns 1 if it was, 0 if not, -1 when memory is out. */
static inline int cyg_word_recall(const cyg_words *words, const cyg_word *word, cyg_ids *ids)
{
    if (!word->place)
        return 0;
    if (word->size <= CYG_SHORT_BYTES) {
        const cyg_short_word *found = (const cyg_short_word *)word->place;
        if (found->low != word->low || found->high != word->high)
            return 0;
        if (cyg_ids_reserve(ids, CYG_SHORT_IDS))
            return -1;
        memcpy(ids->data + ids->size, found->ids, sizeof found->ids);
        ids->size += (size_t)found->count;
        return 1;
    }
    const cyg_long_word *found = (const cyg_long_word *)word->place;
    if (found->hash != word->low || found->size != word->size + (word->mark ? 1 + CYG_LONG_BYTES : 0) || !found->place)
        return 0;
    const uint8_t *stored = words->arena + found->place;
    size_t id_bytes = found->count * sizeof(int32_t);
    if (memcmp(stored + id_bytes, word->bytes, word->size))
        return 0;
    if (cyg_ids_reserve(ids, found->count))
        return -1;
    memcpy(ids->data + ids->size, stored, id_bytes);
    ids->size += found->count;
    return 1;
}

/* Keeps the ids of a located word. */
static inline void cyg_word_keep(cyg_words *words, const cyg_word *word, const int32_t *ids, size_t count)
{
    if (!word->place || !count)
        return;
    if (word->size <= CYG_SHORT_BYTES) {
        cyg_short_word *place = (cyg_short_word *)word->place;
        if (count > CYG_SHORT_IDS)
            return;
        place->low = word->low;
        place->high = word->high;
        place->count = (int32_t)count;
        memcpy(place->ids, ids, count * sizeof *ids);
        return;
    }
    uint32_t need = (uint32_t)((count * sizeof *ids + word->size + 7) / 8 * 8);
    if (words->used + need > CYG_ARENA_SIZE) {
        memset(words->longs, 0, sizeof(cyg_long_word) << CYG_LONG_BITS);
        words->used = 8;
    }
    uint8_t *stored = words->arena + words->used;
    memcpy(stored, ids, count * sizeof *ids);
    memcpy(stored + count * sizeof *ids, word->bytes, word->size);
    *(cyg_long_word *)word->place =
        (cyg_long_word){word->low, words->used, (uint16_t)(word->size + (word->mark ? 1 + CYG_LONG_BYTES : 0)), (uint16_t)count};
    words->used += need;
}

#endif
