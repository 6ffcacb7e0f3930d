/* New pieces: those that are tokens are looked up, the others merged in turns. */
#include "bpe_learn.h"

#include "bpe_few.h"

/* Pieces that are not in the first line of theirs; the second is asked for. */
static size_t find_missing(const cyg_bpe_cache *cache, const cyg_piece *pieces, size_t count, const cyg_piece **missing)
{
    size_t n = 0;
    for (size_t k = 0; k < count; k++) {
        const cyg_piece *piece = missing[n] = &pieces[k];
        if (CYG_RARELY(piece->length > CYG_SHORT_BYTES)) {
            n += piece->length <= CYG_LONG_MAX && !cyg_long_find(cache, piece);
            continue;
        }
        const cyg_short_piece *e = cyg_short_line(piece, 0);
        size_t found = ((size_t)(e[0].low == piece->low) & (size_t)(e[0].high == piece->high)) | ((size_t)(e[1].low == piece->low) & (size_t)(e[1].high == piece->high));
        if (found) continue;
        CYG_PREFETCH(cyg_short_line(piece, 1));
        n++;
    }
    return n;
}

/* A new piece, and the token that it seems to be. */
typedef struct {
    const cyg_piece *piece;
    const struct cyg_token *seems;
} new_piece;

/* Those that are not in the second line either; what looking them up as tokens needs is asked for, one step for all of them, then the next. */
static size_t expect_tokens(const cyg_bpe *bpe, const cyg_bpe_cache *cache, const cyg_piece *const *missing, size_t count, new_piece *news)
{
    size_t n = 0;
    for (size_t k = 0; k < count; k++) {
        const cyg_piece *piece = news[n].piece = missing[k];
        if (piece->length <= CYG_SHORT_BYTES && cyg_short_in(cyg_short_line(piece, 1), piece)) continue;
        cyg_token_expect_line(&bpe->tokens, piece);
        n++;
    }
    for (size_t k = 0; k < n; k++) news[k].seems = cyg_token_expect(&bpe->tokens, news[k].piece);
    for (size_t k = 0; k < n; k++) CYG_PREFETCH(news[k].seems->bytes);
    return n;
}

static void keep(cyg_bpe_cache *cache, const cyg_piece *piece, const int32_t *ids, size_t count)
{
    /* A piece that comes twice in a batch is learnt twice. */
    if (piece->length <= CYG_SHORT_BYTES ? !cyg_short_find(piece) : !cyg_long_find(cache, piece)) cyg_cache_keep(cache, piece, ids, count);
}

/* Pieces that are no tokens, which merge in turns. */
enum { POT = 16 };
typedef struct {
    const cyg_piece *piece;
    cyg_few few;
} merging;

/* Begins a new piece. Returns 1 where it takes part in the turns, 0 where it is done, -1 when memory is out. */
static int begin(const cyg_bpe *bpe, cyg_bpe_cache *cache, cyg_bpe_scratch *scratch, merging *m, const new_piece *new)
{
    const cyg_piece *piece = m->piece = new->piece;
    if (cyg_bpe_looks_up(bpe)) {
        int32_t id = cyg_bpe_if_whole(bpe, cyg_token_confirm(&bpe->tokens, new->seems, piece));
        if (id >= 0) {
            keep(cache, piece, (int32_t[CYG_SHORT_IDS]){id}, 1);
            return 0;
        }
    }
    if (cyg_few_begin(bpe, &m->few, piece)) return 1;
    cyg_ids ids = {0};
    int status = cyg_bpe_merge_piece(bpe, scratch, piece->start, piece->length, &ids, NULL) || cyg_ids_reserve(&ids, CYG_SHORT_IDS) ? -1 : 0;
    if (!status) keep(cache, piece, ids.data, ids.size);
    free(ids.data);
    return status;
}

static int merge_all(const cyg_bpe *bpe, cyg_bpe_cache *cache, cyg_bpe_scratch *scratch, const new_piece *news, size_t count)
{
    merging pot[POT], *turn[POT];
    size_t active = 0, next = 0;
    for (size_t k = 0; k < POT; k++) turn[k] = &pot[k];
    do {
        size_t older = active;
        while (next < count && active < POT) {
            int status = begin(bpe, cache, scratch, turn[active], &news[next++]);
            if (status < 0) return -1;
            active += (size_t)status;
        }
        for (size_t k = 0; k < older; k++) cyg_few_merge(&bpe->pairs, &turn[k]->few);
        for (size_t k = older; k < active; k++) cyg_few_look_up(bpe, &turn[k]->few, turn[k]->piece);
        for (size_t k = 0; k < active;) {
            merging *m = turn[k];
            if (cyg_few_choose(&bpe->pairs, &m->few)) {
                k++;
                continue;
            }
            int32_t ids[CYG_FEW];
            keep(cache, m->piece, ids, cyg_few_end(&m->few, ids));
            turn[k] = turn[--active];
            turn[active] = m;
        }
    } while (next < count || active);
    return 0;
}

int cyg_bpe_learn(const cyg_bpe *bpe, cyg_bpe_cache *cache, cyg_bpe_scratch *scratch, const cyg_piece *pieces, size_t count)
{
    const cyg_piece *missing[CYG_BATCH + 1];
    new_piece news[CYG_BATCH + 1];
    count = find_missing(cache, pieces, count, missing);
    count = expect_tokens(bpe, cache, missing, count, news);
    return merge_all(bpe, cache, scratch, news, count);
}
