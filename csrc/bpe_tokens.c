/* The table of tokens by their bytes. */
#include "bpe_tokens.h"

#include "bpe.h"

static int place(struct cyg_token_table *t, uint32_t index)
{
    cyg_piece piece = {.start = t->tokens[index].bytes, .length = t->tokens[index].size};
    if (piece.length > CYG_SHORT_BYTES)
        cyg_piece_hash_long(&piece);
    else
        cyg_piece_key_short(&piece, piece.start);
    uint64_t hash = cyg_piece_hash(&piece);
    return cyg_lines_add(t->lines + cyg_token_line(t, hash), cyg_token_mark(hash), index);
}

int cyg_tokens_init(struct cyg_token_table *t, size_t capacity)
{
    *t = (struct cyg_token_table){.capacity = capacity};
    t->tokens = calloc(capacity + 2, sizeof *t->tokens);
    if (!t->tokens) return -1;
    t->tokens[0].size = UINT32_MAX;
    return 0;
}

void cyg_tokens_free(struct cyg_token_table *t)
{
    free(t->tokens);
    free(t->lines);
}

int cyg_bpe_add_token(cyg_bpe *bpe, const uint8_t *bytes, size_t size, int32_t id)
{
    struct cyg_token_table *t = &bpe->tokens;
    if (t->count == t->capacity) return -1;
    t->tokens[++t->count] = (struct cyg_token){bytes, (uint32_t)size, id};
    return 0;
}

/* Returns 0, 1 where the lines are too few, -1 when memory is out. */
static int place_all(struct cyg_token_table *t)
{
    t->lines = cyg_table_alloc((((size_t)1 << t->line_bits) + CYG_LINES_TRIED) * sizeof *t->lines);
    if (!t->lines) return -1;
    for (uint32_t i = 1; i <= t->count; i++)
        if (place(t, i)) return 1;
    return 0;
}

int cyg_bpe_index_tokens(cyg_bpe *bpe)
{
    struct cyg_token_table *t = &bpe->tokens;
    while (cyg_lines_are_few(t->line_bits, t->count)) t->line_bits++;
    for (unsigned most = t->line_bits + CYG_LINES_GROWTH; t->line_bits <= most; t->line_bits++) {
        int status = place_all(t);
        if (status <= 0) return status;
        free(t->lines);
        t->lines = NULL;
    }
    return -1;
}

int32_t cyg_token_find(const struct cyg_token_table *t, const cyg_piece *piece)
{
    const cyg_line *line = t->lines + cyg_token_line(t, cyg_piece_hash(piece));
    for (size_t i = 0; i < CYG_LINES_TRIED * CYG_LINE_WAYS; i++) {
        uint32_t index = line[i / CYG_LINE_WAYS].value[i % CYG_LINE_WAYS] & ~CYG_GOES_ON;
        if (!index) break;
        if (cyg_token_is(&t->tokens[index], piece)) return t->tokens[index].id;
    }
    return -1;
}

int32_t cyg_bpe_find_token(const cyg_bpe *bpe, const uint8_t *bytes, size_t size)
{
    cyg_piece piece = cyg_piece_of(bytes, size);
    return cyg_token_confirm(&bpe->tokens, cyg_token_expect(&bpe->tokens, cyg_piece_hash(&piece)), &piece);
}
