/* New pieces: those that are tokens are looked up, the others merged in turns. */
#include "bpe_learn.h"

#include "bpe_few.h"

/* Pieces that are not in the first line of theirs. */
static size_t find_missing(const cyg_bpe_cache *cache, const cyg_piece *pieces, size_t count, const cyg_piece **missing)
{
    size_t n = 0;
    for (size_t k = 0; k < count; k++) {
        const cyg_piece *piece = missing[n] = &pieces[k];
        if (CYG_RARELY(piece->length > CYG_SHORT_BYTES)) {
            n += piece->length <= CYG_LONG_MAX && !cyg_long_find(cache, piece);
        } else {
            const cyg_short_piece *e = cyg_short_line(piece, 0);
            size_t first = (size_t)(e[0].low == piece->low) & (size_t)(e[0].high == piece->high);
            size_t second = (size_t)(e[1].low == piece->low) & (size_t)(e[1].high == piece->high);
            n += !(first | second);
        }
    }
    return n;
}

/* A new piece, and the token that it seems to be. */
typedef struct {
    const cyg_piece *piece;
    const struct cyg_token *seems;
    uint64_t hash;
} new_piece;

/* Those that are not in the second line either, mostly once each; what looking them up as tokens needs is asked for, one step for all of them, then
 * the next. */
static size_t expect_tokens(const cyg_bpe *bpe, const cyg_piece *const *missing, size_t count, new_piece *news)
{
    uint64_t seen[CYG_BATCH] = {0};
    size_t n = 0;
    for (size_t k = 0; k < count; k++)
        if (missing[k]->length <= CYG_SHORT_BYTES) CYG_PREFETCH(cyg_short_line(missing[k], 1));
    for (size_t k = 0; k < count; k++) {
        const cyg_piece *piece = news[n].piece = missing[k];
        uint64_t hash = news[n].hash = cyg_piece_hash(piece), *same = &seen[(hash >> 32) % CYG_BATCH];
        if (*same == hash || (piece->length <= CYG_SHORT_BYTES && cyg_short_in(cyg_short_line(piece, 1), piece))) continue;
        *same = hash;
        cyg_token_expect_line(&bpe->tokens, hash);
        n++;
    }
    for (size_t k = 0; k < n; k++) news[k].seems = cyg_token_expect(&bpe->tokens, news[k].hash);
    for (size_t k = 0; k < n; k++) CYG_PREFETCH(news[k].seems->bytes);
    return n;
}

/* Keeps a piece that is a token. Returns 0 where it is none. */
static int keep_token(const cyg_bpe *bpe, cyg_bpe_cache *cache, const new_piece *new)
{
    int32_t ids[CYG_SHORT_IDS] = {cyg_bpe_if_whole(bpe, cyg_token_confirm(&bpe->tokens, new->seems, new->piece))};
    if (ids[0] < 0) return 0;
    cyg_cache_keep(cache, new->piece, ids, 1);
    return 1;
}

/* A piece whose symbols are many or not bytes. Returns 0, or -1 when memory is out. */
static int keep_merged(const cyg_bpe *bpe, cyg_bpe_space *space, const cyg_piece *piece, cyg_ids *ids)
{
    size_t before = ids->size;
    if (cyg_bpe_merge_piece(bpe, &space->scratch, piece->start, piece->length, ids, NULL) || cyg_ids_reserve(ids, CYG_SHORT_IDS)) return -1;
    cyg_cache_keep(&space->cache, piece, ids->data + before, ids->size - before);
    ids->size = before;
    return 0;
}

/* Pieces that merge in turns. */
enum { POT = 16 };
typedef struct {
    const cyg_piece *piece;
    cyg_few few;
} merging;

/* Begins a new piece. Returns 1 where it takes part in the turns, 0 where it is done, -1 when memory is out. */
static int begin(const cyg_bpe *bpe, cyg_bpe_space *space, merging *m, const new_piece *new, cyg_ids *ids)
{
    m->piece = new->piece;
    if (cyg_bpe_looks_up(bpe) && keep_token(bpe, &space->cache, new)) return 0;
    return cyg_few_begin(bpe, &m->few, m->piece) ? 1 : keep_merged(bpe, space, m->piece, ids);
}

/* Makes the choice of those in turn; the ones without are kept and go behind the others, whose number is returned. */
static size_t choose(const cyg_bpe *bpe, cyg_bpe_cache *cache, merging **turn, size_t active)
{
    for (size_t k = 0; k < active;) {
        merging *m = turn[k];
        if (cyg_few_choose(&bpe->pairs, &m->few)) {
            k++;
            continue;
        }
        int32_t ids[CYG_FEW];
        cyg_cache_keep(cache, m->piece, ids, cyg_few_end(&m->few, ids));
        turn[k] = turn[--active];
        turn[active] = m;
    }
    return active;
}

/* One step of each piece in the pot after that of another: between the steps of one, the memory answers. */
static int merge_all(const cyg_bpe *bpe, cyg_bpe_space *space, const new_piece *news, size_t count, cyg_ids *ids)
{
    merging pot[POT], *turn[POT];
    size_t active = 0, next = 0;
    for (size_t k = 0; k < POT; k++) turn[k] = &pot[k];
    do {
        size_t older = active;
        while (next < count && active < POT) {
            int status = begin(bpe, space, turn[active], &news[next++], ids);
            if (status < 0) return -1;
            active += (size_t)status;
        }
        for (size_t k = 0; k < older; k++) cyg_few_merge(&bpe->pairs, &turn[k]->few);
        for (size_t k = older; k < active; k++) cyg_few_look_up(bpe, &turn[k]->few, turn[k]->piece);
        active = choose(bpe, &space->cache, turn, active);
    } while (next < count || active);
    return 0;
}

int cyg_bpe_learn(const cyg_bpe *bpe, cyg_bpe_space *space, const cyg_piece *pieces, size_t count, cyg_ids *ids)
{
    const cyg_piece *missing[CYG_BATCH + 1];
    new_piece news[CYG_BATCH + 1];
    count = find_missing(&space->cache, pieces, count, missing);
    count = expect_tokens(bpe, missing, count, news);
    return merge_all(bpe, space, news, count, ids);
}
