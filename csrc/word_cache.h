/* Words seen before and their ids: a direct-mapped table, owned by one running call and never locked. Short words only: at most 15 bytes
 * and 4 ids; a new word pushes the old one of its place out. */
#ifndef CYG_WORD_CACHE_H
#define CYG_WORD_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cyg_ids.h"

enum { CYG_WORD_BYTES = 15, CYG_WORD_IDS = 4, CYG_WORD_BITS = 16, CYG_WORD_SLACK = 16 };

typedef struct {
    uint64_t low, high;         /* the bytes; in the top byte their number plus one, and a mark of the caller's; 0: empty */
    int32_t ids[CYG_WORD_IDS];  /* -1 after the last */
} cyg_word;

#define CYG_LOW_BYTES(n) (UINT64_MAX >> (64 - 8 * (n)))

/* The place of a word of at most CYG_WORD_BYTES bytes, with its key written to low and high. CYG_WORD_SLACK bytes can be read at `bytes`. */
static inline cyg_word *cyg_word_place(cyg_word *table, const uint8_t *bytes, size_t size, int mark, uint64_t *low, uint64_t *high)
{
    uint64_t key[2];
    memcpy(key, bytes, sizeof key);
    if (size <= 8) {
        key[0] = size ? key[0] & CYG_LOW_BYTES(size) : 0;
        key[1] = 0;
    } else {
        key[1] &= CYG_LOW_BYTES(size - 8);
    }
    key[1] |= (uint64_t)(size + 1 + (mark ? 32 : 0)) << 56;
    *low = key[0];
    *high = key[1];
    uint64_t h = (key[0] ^ (key[1] << 29 | key[1] >> 35)) * UINT64_C(0x9E3779B97F4A7C15);
    return table + ((h ^ h >> 29) * UINT64_C(0xBF58476D1CE4E5B9) >> (64 - CYG_WORD_BITS));
}

static inline cyg_word *cyg_words_new(void) { return (cyg_word *)calloc((size_t)1 << CYG_WORD_BITS, sizeof(cyg_word)); }

/* Appends the ids of a word that is in its place. Returns 0, or -1 when memory is out. */
static inline int cyg_word_append(const cyg_word *word, cyg_ids *ids)
{
    if (cyg_ids_reserve(ids, CYG_WORD_IDS))
        return -1;
    memcpy(ids->data + ids->size, word->ids, sizeof word->ids);
    ids->size += 1 + (word->ids[1] >= 0) + (word->ids[2] >= 0) + (word->ids[3] >= 0);
    return 0;
}

/* Keeps ids as those of a word, if there are few enough and any. */
static inline void cyg_word_keep(cyg_word *word, uint64_t low, uint64_t high, const int32_t *ids, size_t count)
{
    if (count > CYG_WORD_IDS || !count)
        return;
    word->low = low;
    word->high = high;
    for (size_t i = 0; i < CYG_WORD_IDS; i++)
        word->ids[i] = i < count ? ids[i] : -1;
}

#endif
