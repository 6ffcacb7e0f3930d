/* Characters of several bytes that can be taken as one symbol before anything is merged, told from the merges alone.
 *
 * The bytes of a character merge by themselves to a token where no merge across its ends that touches a part of it, or the whole, comes before the last
 * of its own. Which merges there are across an end depends on the byte beyond it: a character whose neighbours' bytes have none begins as its token. */
#ifndef CYG_BPE_STARTS_H
#define CYG_BPE_STARTS_H

#include "bpe.h"
#include "scan_classes.h"

/* Classes of characters that mind the same neighbours. */
enum { CYG_START_CLASSES = 1024, CYG_START_ID_BITS = 20 };

struct cyg_starts {
    uint32_t *page[0x1100]; /* by code point: id, and above it the class; CYG_NO_RANK: none */
    uint64_t before[CYG_START_CLASSES], after[CYG_START_CLASSES]; /* a bit for the low six bits of each byte that may merge across */
    unsigned classes;
};

/* Sets bpe->starts from `count` merges (left, right, merged), after all tokens and cyg_bpe_finish(); leaves it NULL
 * where a byte has no symbol. Returns 0, or -1 when memory is out. */
int cyg_bpe_find_starts(cyg_bpe *bpe, const int32_t *merges, size_t count);
void cyg_starts_free(struct cyg_starts *starts);

/* Code point of the character at `at`, its size in *size; 0 where the bytes are no whole character of several. */
static inline uint32_t cyg_wide_at(const uint8_t *piece, size_t at, size_t length, size_t *size)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *p = piece + at;
    size_t n = *size = cyg_utf8_size(p[0]);
    if (n < 2 || n > length - at) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    uint32_t code = cyg_utf8_decode(p);
    return code >= least[n] && code < 0x110000 ? code : 0;
}

/* The token that the character at `at` begins as, its size in *size; -1 where it begins as bytes. */
static inline int32_t cyg_start_at(const struct cyg_starts *starts, const uint8_t *piece, size_t at, size_t length, size_t *size)
{
    uint32_t code = cyg_wide_at(piece, at, length, size);
    const uint32_t *page = starts->page[code >> 8];
    if (!code || !page || page[code & 255] == CYG_NO_RANK) return -1;
    uint32_t class = page[code & 255] >> CYG_START_ID_BITS;
    size_t end = at + *size;
    uint64_t minded = at ? starts->before[class] >> (piece[at - 1] & 63) : 0;
    if (end < length) minded |= starts->after[class] >> (piece[end] & 63);
    return minded & 1 ? -1 : (int32_t)(page[code & 255] & ((1u << CYG_START_ID_BITS) - 1));
}

#endif
