/* Which tokens merge to themselves, told from their merges without merging their bytes.
 *
 * A token comes about by a tree of merges whose ranks grow towards the root. Put two such trees side by side: merging follows both, in order of rank,
 * as long as no pair across the boundary has a smaller rank than the merges that take its ends away. Which pairs stand at the boundary at one time or
 * another is told by the right edge of the left tree and the left edge of the right one. So the token of a merge comes about by it where its two
 * parts come about and nothing crosses between them before. */
#include "bpe_whole.h"

#include <string.h>

#include "bpe_tokens.h"
#include "cyg_table.h"

/* The merge that makes a token; rank SYMBOL for the symbol of a byte, NEVER where it does not come about. */
typedef struct {
    int32_t left, right, rank;
} making;
enum { SYMBOL = -1, NEVER = -2 };

/* Whether the two come to stand side by side when their bytes are merged together: goes back over the pairs at their boundary. */
static int can_meet(const cyg_bpe *bpe, const making *made, int32_t a, int32_t b)
{
    uint32_t a_goes = CYG_NO_RANK, b_goes = CYG_NO_RANK; /* the ranks at which they go into others */
    if (made[a].rank == NEVER || made[b].rank == NEVER) return 0;
    for (;;) {
        if (made[a].rank > made[b].rank) {
            a_goes = (uint32_t)made[a].rank;
            a = made[a].right;
        } else {
            if (made[b].rank == SYMBOL) return 1;
            b_goes = (uint32_t)made[b].rank;
            b = made[b].left;
        }
        uint32_t rank = cyg_bpe_rank(bpe, a, b);
        /* Of equal pairs the left one merges first: that which takes a away, then a with b, then that which takes b away. */
        if (rank < a_goes && rank <= b_goes) return 0;
    }
}

static int place_symbols(const cyg_bpe *bpe, making *made, size_t ids)
{
    for (size_t i = 0; i < ids; i++) made[i] = (making){-1, -1, NEVER};
    for (int b = 0; b < 256; b++) {
        int32_t id = bpe->byte_id[b];
        if (id < 0) continue;
        if ((size_t)id >= ids || made[id].rank == SYMBOL) return 0;
        made[id].rank = SYMBOL;
    }
    return 1;
}

/* By rank, so that the parts of a merge are made already, by smaller ranks, where they are made at all. */
static void make_tokens(const cyg_bpe *bpe, making *made, const int32_t *merges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int32_t *m = merges + 3 * i;
        if (made[m[2]].rank == NEVER && cyg_bpe_rank(bpe, m[0], m[1]) == i && can_meet(bpe, made, m[0], m[1])) made[m[2]] = (making){m[0], m[1], (int32_t)i};
    }
}

static int ids_are_distinct(const struct cyg_token_table *tokens, uint8_t *seen)
{
    for (size_t i = 0; i < tokens->count; i++)
        if (seen[tokens->tokens[i + 1].id]++) return 0;
    return 1;
}

static size_t count_ids(const struct cyg_token_table *tokens, const int32_t *merges, size_t count)
{
    int32_t largest = 0;
    for (size_t i = 0; i < tokens->count; i++) largest = tokens->tokens[i + 1].id > largest ? tokens->tokens[i + 1].id : largest;
    for (size_t i = 0; i < 3 * count; i++) largest = merges[i] > largest ? merges[i] : largest;
    return (size_t)largest + 1;
}

int cyg_bpe_find_whole(cyg_bpe *bpe, const int32_t *merges, size_t count)
{
    size_t ids = count_ids(&bpe->tokens, merges, count);
    making *made = cyg_table_alloc(ids * sizeof *made);
    uint8_t *whole = calloc(ids, 1);
    int status = made && whole ? 0 : -1;
    if (!status && ids_are_distinct(&bpe->tokens, whole) && place_symbols(bpe, made, ids)) {
        make_tokens(bpe, made, merges, count);
        for (size_t i = 0; i < ids; i++) whole[i] = made[i].rank != NEVER;
        bpe->whole = whole;
    } else {
        free(whole);
    }
    free(made);
    return status;
}
