/* Encoding of cut text through the piece cache. */
#include "bpe_encode.h"

#include "bpe_learn.h"

void cyg_bpe_space_free(cyg_bpe_space *space)
{
    cyg_cache_free(&space->cache);
    cyg_bpe_scratch_free(&space->scratch);
    cyg_classes_free(&space->classes);
}

static CYG_APART void locate_long(const cyg_bpe_cache *cache, cyg_piece *piece)
{
    if (piece->length > CYG_LONG_MAX) return;
    cyg_piece_hash_long(piece);
    CYG_PREFETCH(cyg_long_line(cache, piece));
}

static CYG_APART void prefetch_stored(const cyg_bpe_cache *cache, const cyg_piece *piece)
{
    if (piece->length > CYG_LONG_MAX) return;
    const cyg_long_piece *e = cyg_long_find(cache, piece);
    if (!e) return;
    CYG_PREFETCH(cache->arena + e->offset);
    CYG_PREFETCH(cache->arena + e->offset + 64);
}

/* Where the pieces of a batch lie in the tables: all are asked for before the first is read. */
static void locate(const cyg_bpe_cache *cache, cyg_piece *batch, const uint8_t *text, const uint8_t *end, size_t begin, const size_t *ends, size_t count)
{
    cyg_piece *longs[CYG_BATCH];
    size_t n = 0;
    for (size_t k = 0; k < count; k++) {
        cyg_piece *piece = &batch[k];
        piece->start = text + begin;
        piece->length = ends[k] - begin;
        begin = ends[k];
        if (CYG_RARELY(piece->length > CYG_SHORT_BYTES)) {
            locate_long(cache, longs[n++] = piece);
            continue;
        }
        if (CYG_RARELY(end - piece->start < 16))
            *piece = cyg_piece_of(piece->start, piece->length);
        else
            cyg_piece_key_short(piece, piece->start);
        cyg_short_locate(cache, piece);
    }
    for (size_t k = 0; k < n; k++) prefetch_stored(cache, longs[k]);
}

/* The first of `ahead` pieces of a batch; where it is new, all new ones of them are learnt. */
static CYG_APART int encode_long(const cyg_bpe *bpe, cyg_bpe_space *space, const cyg_piece *piece, size_t ahead, cyg_ids *ids)
{
    int found = 0;
    if (piece->length <= CYG_LONG_MAX && !(found = cyg_cache_recall_long(&space->cache, piece, ids))) {
        if (cyg_bpe_learn(bpe, space, piece, ahead, ids)) return -1;
        found = cyg_cache_recall_long(&space->cache, piece, ids);
    }
    if (found < 0) return -1;
    return found ? 0 : cyg_bpe_piece(bpe, &space->scratch, piece->start, piece->length, ids, NULL);
}

int cyg_bpe_encode_pieces(const cyg_bpe *bpe, cyg_bpe_space *space, const uint8_t *text, size_t length, size_t begin, const size_t *ends, size_t count,
                          cyg_ids *ids)
{
    cyg_piece batch[CYG_BATCH];
    if (cyg_cache_ready(&space->cache)) return -1;
    for (size_t done = 0; done < count; done += CYG_BATCH) {
        size_t n = count - done < CYG_BATCH ? count - done : CYG_BATCH;
        locate(&space->cache, batch, text, text + length, begin, ends + done, n);
        begin = ends[done + n - 1];
        for (size_t k = 0; k < n; k++) {
            const cyg_piece *piece = &batch[k];
            if (CYG_RARELY(piece->length > CYG_SHORT_BYTES)) {
                if (encode_long(bpe, space, piece, n - k, ids)) return -1;
                continue;
            }
            const cyg_short_piece *e;
            for (size_t ahead = n - k; CYG_RARELY(!(e = cyg_short_find(piece))); ahead = 1)
                if (cyg_bpe_learn(bpe, space, piece, ahead, ids)) return -1;
            if (cyg_short_append(&space->cache, e, ids)) return -1;
        }
    }
    return 0;
}

int cyg_bpe_encode(const cyg_bpe *bpe, const cyg_split_rule *rule, cyg_bpe_space *space, const uint8_t *text, size_t length, cyg_ids *ids)
{
    size_t ends[CYG_BATCH], begin = 0, count;
    cyg_splitter splitter;
    if (cyg_classify(&space->classes, text, length)) return -1;
    cyg_split_begin(&splitter, rule, &space->classes, text, length);
    while ((count = cyg_split_next(&splitter, ends, CYG_BATCH))) {
        if (cyg_bpe_encode_pieces(bpe, space, text, length, begin, ends, count, ids)) return -1;
        begin = ends[count - 1];
    }
    return 0;
}
