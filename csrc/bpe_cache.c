/* The cache of pieces: what is not done for every piece. */
#include "bpe_cache.h"

#define ARENA_SIZE ((uint32_t)8 << 20)

int cyg_cache_ready(cyg_bpe_cache *c)
{
    if (c->shorts) return 0;
    *c = (cyg_bpe_cache){.arena_used = 4};
    c->shorts = cyg_table_alloc(((size_t)2 << CYG_SHORT_BITS) * sizeof *c->shorts);
    c->longs = cyg_table_alloc(((size_t)1 << CYG_LONG_BITS) * sizeof *c->longs);
    c->arena = cyg_huge_alloc(ARENA_SIZE);
    if (c->shorts && c->longs && c->arena) return 0;
    cyg_cache_free(c);
    return -1;
}

void cyg_cache_free(cyg_bpe_cache *c)
{
    free(c->shorts);
    free(c->longs);
    free(c->arena);
    memset(c, 0, sizeof *c);
}

/* So many bytes of the arena, after forgetting all where it is full. */
static uint32_t arena_place(cyg_bpe_cache *c, size_t size)
{
    if (size > ARENA_SIZE - c->arena_used) {
        memset(c->shorts, 0, ((size_t)2 << CYG_SHORT_BITS) * sizeof *c->shorts);
        memset(c->longs, 0, ((size_t)1 << CYG_LONG_BITS) * sizeof *c->longs);
        c->arena_used = 4;
    }
    uint32_t place = c->arena_used;
    c->arena_used += (uint32_t)size;
    return place;
}

static void keep_short(cyg_bpe_cache *c, const cyg_piece *piece, const int32_t *ids, size_t count)
{
    cyg_short_piece e = {piece->low, piece->high, {0}};
    if (count <= CYG_SHORT_IDS) {
        memcpy(e.ids, ids, sizeof e.ids);
        e.ids[0] = count ? e.ids[0] | (uint32_t)count << CYG_ID_BITS : 0;
    } else {
        e.ids[0] = (uint32_t)CYG_IN_ARENA << CYG_ID_BITS;
        e.ids[1] = arena_place(c, count * sizeof *ids);
        e.ids[2] = (uint32_t)count;
        memcpy(c->arena + e.ids[1], ids, count * sizeof *ids);
    }
    cyg_short_piece *first = cyg_short_line(piece, 0), *second = cyg_short_line(piece, 1);
    if (first[1].high && (!second[1].high || c->turn++ & 1)) {
        second[1] = second[0];
        second[0] = first[1];
    }
    first[1] = first[0];
    first[0] = e;
}

static size_t padded(size_t length) { return (length + 3) & ~(size_t)3; }

static void keep_long(cyg_bpe_cache *c, const cyg_piece *piece, const int32_t *ids, size_t count)
{
    uint32_t place = arena_place(c, padded(piece->length) + count * sizeof *ids);
    memcpy(c->arena + place, piece->start, piece->length);
    memcpy(c->arena + place + padded(piece->length), ids, count * sizeof *ids);
    cyg_long_piece *line = cyg_long_line(c, piece);
    memmove(line + 1, line, (CYG_LONG_WAYS - 1) * sizeof *line);
    line[0] = (cyg_long_piece){piece->low, place, (uint16_t)piece->length, (uint16_t)count};
}

void cyg_cache_keep(cyg_bpe_cache *c, const cyg_piece *piece, const int32_t *ids, size_t count)
{
    if (piece->length <= CYG_SHORT_BYTES)
        keep_short(c, piece, ids, count);
    else if (count <= UINT16_MAX)
        keep_long(c, piece, ids, count);
}

int cyg_cache_recall_long(const cyg_bpe_cache *c, const cyg_piece *piece, cyg_ids *ids)
{
    const cyg_long_piece *e = cyg_long_find(c, piece);
    if (!e || e->length != piece->length) return 0;
    const uint8_t *data = c->arena + e->offset;
    if (memcmp(data, piece->start, piece->length) != 0) return 0;
    if (cyg_ids_reserve(ids, e->count)) return -1;
    memcpy(ids->data + ids->size, data + padded(piece->length), e->count * sizeof(int32_t));
    ids->size += e->count;
    return 1;
}
