/* The table of tokens by their bytes. */
#include "bpe_tokens.h"

#include <string.h>

#include "bpe.h"
#include "cyg_table.h"
#include "scan_classes.h"

static uint64_t hash_bytes(const uint8_t *p, size_t n)
{
    uint64_t h = n * UINT64_C(0x9E3779B97F4A7C15);
    while (n >= 8) {
        h = (h ^ cyg_load64(p)) * UINT64_C(0xD6E8FEB86659FD93);
        h ^= h >> 32;
        p += 8;
        n -= 8;
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < n; i++) tail |= (uint64_t)p[i] << 8 * i;
    h = (h ^ tail) * UINT64_C(0xD6E8FEB86659FD93);
    return h ^ h >> 32;
}

int cyg_bpe_add_token(cyg_bpe *bpe, const uint8_t *bytes, size_t size, int32_t id)
{
    struct cyg_token_table *t = bpe->tokens;
    if (t->count == t->capacity) return -1;
    t->tokens[t->count++] = (struct cyg_token){bytes, (uint32_t)size, id};
    uint64_t h = hash_bytes(bytes, size);
    size_t mask = ((size_t)1 << t->bits) - 1, slot = (size_t)h & mask;
    while (t->slots[slot]) slot = (slot + 1) & mask;
    t->slots[slot] = (h & ~(uint64_t)UINT32_MAX) | t->count;
    return 0;
}

int32_t cyg_bpe_find_token(const cyg_bpe *bpe, const uint8_t *bytes, size_t size)
{
    const struct cyg_token_table *t = bpe->tokens;
    uint64_t h = hash_bytes(bytes, size);
    size_t mask = ((size_t)1 << t->bits) - 1, slot = (size_t)h & mask;
    for (; t->slots[slot]; slot = (slot + 1) & mask) {
        if (t->slots[slot] >> 32 != h >> 32) continue;
        const struct cyg_token *token = &t->tokens[(uint32_t)t->slots[slot] - 1];
        if (token->size == size && memcmp(token->bytes, bytes, size) == 0) return token->id;
    }
    return -1;
}

uint64_t cyg_bpe_expect_slot(const cyg_bpe *bpe, const uint8_t *bytes, size_t size)
{
    const struct cyg_token_table *t = bpe->tokens;
    uint64_t h = hash_bytes(bytes, size);
    CYG_PREFETCH(&t->slots[h & (((size_t)1 << t->bits) - 1)]);
    return h;
}

const struct cyg_token *cyg_bpe_expect_token(const cyg_bpe *bpe, uint64_t h)
{
    const struct cyg_token_table *t = bpe->tokens;
    size_t mask = ((size_t)1 << t->bits) - 1, slot = (size_t)h & mask;
    for (; t->slots[slot]; slot = (slot + 1) & mask) {
        if (t->slots[slot] >> 32 != h >> 32) continue;
        CYG_PREFETCH(&t->tokens[(uint32_t)t->slots[slot] - 1]);
        return &t->tokens[(uint32_t)t->slots[slot] - 1];
    }
    return NULL;
}
