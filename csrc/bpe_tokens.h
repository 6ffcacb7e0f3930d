/* Tokens by bytes: open addressing over indices; the hash kept beside saves most comparisons. */
#ifndef CYG_BPE_TOKENS_H
#define CYG_BPE_TOKENS_H

#include <stddef.h>
#include <stdint.h>

struct cyg_token {
    const uint8_t *bytes;
    uint32_t size;
    int32_t id;
};

struct cyg_token_table {
    struct cyg_token *tokens;
    size_t count, capacity;
    uint64_t *slots; /* hash (high 32 bits) and index + 1, or 0 */
    unsigned bits;
};

/* Size of a hash table for so many entries. */
static inline unsigned cyg_bits_for(size_t entries)
{
    unsigned bits = 4;
    while (((size_t)1 << bits) < entries + entries / 2 + entries / 4) bits++;
    return bits;
}

#endif
