/* The table of tokens by their bytes. */
#ifndef CYG_BPE_TOKENS_H
#define CYG_BPE_TOKENS_H

#include "bpe_lines.h"
#include "bpe_piece.h"
#include "cyg_table.h"

struct cyg_token {
    const uint8_t *bytes;
    uint32_t size;
    int32_t id;
};

/* Entries hold the token's index from 1 on; tokens[0] is none. */
struct cyg_token_table {
    struct cyg_token *tokens;
    size_t count, capacity;
    cyg_line *lines;
    unsigned line_bits;
};

int cyg_tokens_init(struct cyg_token_table *table, size_t capacity);
void cyg_tokens_free(struct cyg_token_table *table);

static inline size_t cyg_token_line(const struct cyg_token_table *t, uint64_t hash) { return (size_t)(hash >> 1 >> (63 - t->line_bits)); }
static inline uint32_t cyg_token_mark(uint64_t hash) { return (uint32_t)(hash >> 8); }

/* Finding many tokens: the memory is asked for the line of each, then for what seems to be the token, then for its bytes. */
static inline void cyg_token_expect_line(const struct cyg_token_table *t, uint64_t hash) { CYG_PREFETCH(t->lines + cyg_token_line(t, hash)); }

static inline const struct cyg_token *cyg_token_expect(const struct cyg_token_table *t, uint64_t hash)
{
    uint32_t index = cyg_lines_value(t->lines + cyg_token_line(t, hash), cyg_token_mark(hash));
    /* Of several with one mark nothing can be told here: any but none. */
    const struct cyg_token *token = t->tokens + (index <= t->count ? index : 1);
    CYG_PREFETCH(token);
    return token;
}

static inline int cyg_token_is(const struct cyg_token *token, const cyg_piece *piece)
{
    return token->size == piece->length && memcmp(token->bytes, piece->start, piece->length) == 0;
}

/* The token of these bytes, or -1. */
int32_t cyg_token_find(const struct cyg_token_table *table, const cyg_piece *piece);
/* The same where the token that seems to be it is known. */
static inline int32_t cyg_token_confirm(const struct cyg_token_table *t, const struct cyg_token *seems, const cyg_piece *piece)
{
    return cyg_token_is(seems, piece) ? seems->id : seems == t->tokens ? -1 : cyg_token_find(t, piece);
}

#endif
