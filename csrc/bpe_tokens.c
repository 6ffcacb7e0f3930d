/* The table of tokens by their bytes. */
#include "bpe_tokens.h"

#include "bpe.h"

/* How far from its line a token may lie, and so how many lines there are behind the last. */
enum { LINES_BEYOND = 16 };

/* Returns 0, or 1 where the lines that may hold the token are full. */
static int place(struct cyg_token_table *t, uint32_t index)
{
    cyg_piece piece = cyg_piece_of(t->tokens[index].bytes, t->tokens[index].size);
    cyg_line *line = t->lines + (cyg_token_line(t, piece.hash) - t->lines);
    for (size_t i = 0; i < LINES_BEYOND * CYG_LINE_WAYS; i++) {
        uint32_t *value = &line[i / CYG_LINE_WAYS].value[i % CYG_LINE_WAYS];
        if (*value) continue;
        line[i / CYG_LINE_WAYS].mark[i % CYG_LINE_WAYS] = cyg_token_mark(piece.hash);
        *value = index;
        return 0;
    }
    return 1;
}

/* Empty lines, of which the last one stays empty. */
static int make_lines(struct cyg_token_table *t)
{
    free(t->lines);
    t->lines = cyg_table_alloc((((size_t)1 << t->line_bits) + LINES_BEYOND) * sizeof *t->lines);
    return t->lines ? 0 : -1;
}

int cyg_tokens_init(struct cyg_token_table *t, size_t capacity)
{
    *t = (struct cyg_token_table){.capacity = capacity};
    while (((size_t)CYG_LINE_WAYS << t->line_bits) * 4 < 7 * capacity) t->line_bits++;
    t->tokens = calloc(capacity + 2, sizeof *t->tokens);
    return !t->tokens || make_lines(t) ? -1 : 0;
}

void cyg_tokens_free(struct cyg_token_table *t)
{
    free(t->tokens);
    free(t->lines);
}

static int grow(struct cyg_token_table *t)
{
    t->line_bits++;
    if (make_lines(t)) return -1;
    for (uint32_t i = 1; i <= t->count; i++)
        if (place(t, i)) return 1;
    return 0;
}

int cyg_bpe_add_token(cyg_bpe *bpe, const uint8_t *bytes, size_t size, int32_t id)
{
    struct cyg_token_table *t = &bpe->tokens;
    if (t->count == t->capacity) return -1;
    t->tokens[++t->count] = (struct cyg_token){bytes, (uint32_t)size, id};
    int status = place(t, (uint32_t)t->count);
    while (status > 0) status = grow(t);
    return status;
}

int32_t cyg_token_find(const struct cyg_token_table *t, const cyg_piece *piece)
{
    const cyg_line *line = cyg_token_line(t, piece->hash);
    for (size_t i = 0;; i++) {
        uint32_t index = line[i / CYG_LINE_WAYS].value[i % CYG_LINE_WAYS];
        if (!index) return -1;
        if (cyg_token_is(&t->tokens[index], piece)) return t->tokens[index].id;
    }
}

int32_t cyg_bpe_find_token(const cyg_bpe *bpe, const uint8_t *bytes, size_t size)
{
    cyg_piece piece = cyg_piece_of(bytes, size);
    return cyg_token_confirm(&bpe->tokens, cyg_token_expect(&bpe->tokens, &piece), &piece);
}
