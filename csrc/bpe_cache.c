/* Encoding of cut text through the piece cache. */
#include "bpe_cache.h"

#include <string.h>

#include "cyg_table.h"

enum { LINE_BITS = 17, LONG_BITS = 16, BATCH = 128 };
#define ARENA_SIZE ((uint32_t)8 << 20)

#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH(p) __builtin_prefetch(p)
#define RARELY(x) __builtin_expect(!!(x), 0)
#define APART __attribute__((noinline))
#else
#define PREFETCH(p) ((void)0)
#define RARELY(x) (x)
#define APART
#endif

static int space_ready(cyg_bpe_space *space)
{
    if (space->lines) return 0;
    cyg_short_piece *lines = cyg_table_alloc(((size_t)2 << LINE_BITS) * sizeof *lines);
    cyg_long_piece *longs = cyg_table_alloc(((size_t)1 << LONG_BITS) * sizeof *longs);
    uint8_t *arena = malloc(ARENA_SIZE);
    if (!lines || !longs || !arena) {
        free(lines);
        free(longs);
        free(arena);
        return -1;
    }
    space->lines = lines;
    space->longs = longs;
    space->arena = arena;
    space->arena_used = 4;
    return 0;
}

void cyg_bpe_space_free(cyg_bpe_space *space)
{
    free(space->lines);
    free(space->longs);
    free(space->arena);
    cyg_bpe_scratch_free(&space->scratch);
    cyg_classes_free(&space->classes);
    memset(space, 0, sizeof *space);
}

/* One piece of a batch: its key where it is short, its bytes where it is long. */
typedef struct {
    const uint8_t *start;
    size_t length;
    uint64_t low, high;
    cyg_short_piece *line;
} looked_up;

#define M(n) (UINT64_MAX >> (64 - 8 * (n)))
static const uint64_t low_mask[16] = {0, M(1), M(2), M(3), M(4), M(5), M(6), M(7), M(8), M(8), M(8), M(8), M(8), M(8), M(8), M(8)};
static const uint64_t high_mask[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, M(1), M(2), M(3), M(4), M(5), M(6), M(7)};

static inline void short_key(looked_up *piece, const uint8_t *end)
{
    const uint8_t *p = piece->start;
    uint8_t copy[16] = {0};
    if (RARELY(end - p < 16)) p = memcpy(copy, p, piece->length);
    piece->low = cyg_load64(p) & low_mask[piece->length];
    piece->high = (cyg_load64(p + 8) & high_mask[piece->length]) | (uint64_t)piece->length << 56;
}

static inline size_t line_of(uint64_t low, uint64_t high)
{
    uint64_t h = (low ^ (high << 29 | high >> 35)) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)((h ^ h >> 29) * UINT64_C(0xBF58476D1CE4E5B9) >> (64 - LINE_BITS));
}

static inline uint32_t load24(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v & 0xFFFFFF;
}

/* Writes all five places, of which only the first ones count: no branch on their number. */
static inline void append_short(cyg_ids *ids, const uint8_t *packed)
{
    int32_t *out = ids->data + ids->size;
    for (int k = 0; k < CYG_SHORT_IDS; k++) out[k] = (int32_t)load24(packed + 3 * k);
    ids->size += packed[15];
}

/* The line beside a line takes what is pushed out of it. */
static cyg_short_piece *line_beside(cyg_bpe_space *space, const cyg_short_piece *line) { return space->lines + ((line - space->lines) ^ 2); }

static int recall_beside(cyg_bpe_space *space, const looked_up *piece, cyg_ids *ids)
{
    const cyg_short_piece *e = line_beside(space, piece->line);
    e += e->low != piece->low || e->high != piece->high;
    if (e->low != piece->low || e->high != piece->high) return 0;
    append_short(ids, e->ids);
    return 1;
}

static void remember_short(cyg_bpe_space *space, const looked_up *piece, const int32_t *ids, size_t count)
{
    cyg_short_piece *line = piece->line, *beside = line_beside(space, line);
    if (line[1].high) {
        if (beside[0].high) beside[1] = line[1];
        else beside[0] = line[1];
    }
    line[1] = line[0];
    line[0].low = piece->low;
    line[0].high = piece->high;
    for (size_t k = 0; k < CYG_SHORT_IDS; k++) {
        uint32_t id = k < count ? (uint32_t)ids[k] : 0;
        for (int b = 0; b < 3; b++) line[0].ids[3 * k + b] = (uint8_t)(id >> 8 * b);
    }
    line[0].ids[15] = (uint8_t)count;
}

static inline void mix(uint64_t *a, uint64_t *b, const uint8_t *p)
{
    *a = (*a ^ cyg_load64(p)) * UINT64_C(0xD6E8FEB86659FD93);
    *b = (*b ^ cyg_load64(p + 8)) * UINT64_C(0xBF58476D1CE4E5B9);
    *a ^= *a >> 29;
    *b ^= *b >> 31;
}

/* By 16 bytes, the last ones overlapping those before. */
static uint64_t hash_long(const uint8_t *p, size_t n)
{
    uint64_t a = n, b = UINT64_C(0x9E3779B97F4A7C15);
    uint8_t copy[16] = {0};
    if (n < 16) {
        p = memcpy(copy, p, n);
        n = 16;
    }
    for (; n > 16; p += 16, n -= 16) mix(&a, &b, p);
    mix(&a, &b, p + n - 16);
    a = (a ^ (b << 17 | b >> 47)) * UINT64_C(0x94D049BB133111EB);
    return a ^ a >> 31;
}

static size_t padded(size_t length) { return (length + 3) & ~(size_t)3; }

/* Two entries side by side may hold a piece. */
static cyg_long_piece *long_pair(cyg_bpe_space *space, uint64_t hash) { return &space->longs[(hash >> (64 - LONG_BITS)) & ~(uint64_t)1]; }

static int recall_long(cyg_bpe_space *space, const uint8_t *piece, size_t length, uint64_t hash, cyg_ids *ids)
{
    const cyg_long_piece *e = long_pair(space, hash);
    e += e[0].hash != hash;
    const uint8_t *data = space->arena + e->offset;
    if (!e->offset || e->hash != hash || e->length != length || memcmp(data, piece, length) != 0) return 0;
    if (cyg_ids_reserve(ids, e->count)) return -1;
    memcpy(ids->data + ids->size, data + padded(length), e->count * sizeof(int32_t));
    ids->size += e->count;
    return 1;
}

static void remember_long(cyg_bpe_space *space, const uint8_t *piece, size_t length, uint64_t hash, const int32_t *ids, size_t count)
{
    size_t size = padded(length) + count * sizeof(int32_t);
    if (size > ARENA_SIZE - space->arena_used) {
        memset(space->longs, 0, ((size_t)1 << LONG_BITS) * sizeof *space->longs);
        space->arena_used = 4;
    }
    uint8_t *data = space->arena + space->arena_used;
    memcpy(data, piece, length);
    memcpy(data + padded(length), ids, count * sizeof(int32_t));
    cyg_long_piece *pair = long_pair(space, hash);
    pair[1] = pair[0];
    pair[0] = (cyg_long_piece){hash, space->arena_used, (uint16_t)length, (uint16_t)count};
    space->arena_used += (uint32_t)size;
}

/* A piece that the short cache does not hold. */
static APART int encode_other(const cyg_bpe *bpe, cyg_bpe_space *space, const looked_up *piece, cyg_ids *ids)
{
    if (piece->length <= CYG_SHORT_BYTES && recall_beside(space, piece, ids)) return 0;
    if (piece->length > CYG_LONG_MAX) return cyg_bpe_piece(bpe, &space->scratch, piece->start, piece->length, ids, NULL);
    uint64_t hash = hash_long(piece->start, piece->length);
    if (piece->length > 5) {
        int found = recall_long(space, piece->start, piece->length, hash, ids);
        if (found) return found < 0 ? -1 : 0;
    }
    size_t before = ids->size;
    if (cyg_bpe_piece(bpe, &space->scratch, piece->start, piece->length, ids, NULL)) return -1;
    const int32_t *found = ids->data + before;
    size_t count = ids->size - before;
    if (piece->length <= CYG_SHORT_BYTES && count <= CYG_SHORT_IDS)
        remember_short(space, piece, found, count);
    else
        remember_long(space, piece->start, piece->length, hash, found, count);
    return 0;
}

static void look_up_lines(cyg_bpe_space *space, looked_up *batch, const uint8_t *text, const uint8_t *end, size_t begin, const size_t *ends, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        looked_up *piece = &batch[k];
        piece->start = text + begin;
        piece->length = ends[k] - begin;
        begin = ends[k];
        if (RARELY(piece->length > CYG_SHORT_BYTES)) continue;
        short_key(piece, end);
        piece->line = space->lines + 2 * line_of(piece->low, piece->high);
        PREFETCH(piece->line);
    }
}

int cyg_bpe_encode_pieces(const cyg_bpe *bpe, cyg_bpe_space *space, const uint8_t *text, size_t length, size_t begin, const size_t *ends, size_t count,
                          cyg_ids *ids)
{
    looked_up batch[BATCH];
    if (space_ready(space)) return -1;
    for (size_t done = 0; done < count; done += BATCH) {
        size_t n = count - done < BATCH ? count - done : BATCH;
        look_up_lines(space, batch, text, text + length, begin, ends + done, n);
        begin = ends[done + n - 1];
        for (size_t k = 0; k < n; k++) {
            if (RARELY(cyg_ids_reserve(ids, CYG_SHORT_IDS))) return -1;
            const looked_up *piece = &batch[k];
            if (piece->length <= CYG_SHORT_BYTES) {
                const cyg_short_piece *e = piece->line;
                size_t second = (size_t)(e[1].low == piece->low) & (size_t)(e[1].high == piece->high);
                e += second;
                if (e->low == piece->low && e->high == piece->high) {
                    append_short(ids, e->ids);
                    continue;
                }
            }
            if (encode_other(bpe, space, piece, ids)) return -1;
        }
    }
    return 0;
}

int cyg_bpe_encode(const cyg_bpe *bpe, const cyg_split_rule *rule, cyg_bpe_space *space, const uint8_t *text, size_t length, cyg_ids *ids)
{
    size_t ends[BATCH], begin = 0, count;
    cyg_splitter splitter;
    if (cyg_classify(&space->classes, text, length)) return -1;
    cyg_split_begin(&splitter, rule, &space->classes, text, length);
    while ((count = cyg_split_next(&splitter, ends, BATCH))) {
        if (cyg_bpe_encode_pieces(bpe, space, text, length, begin, ends, count, ids)) return -1;
        begin = ends[count - 1];
    }
    return 0;
}
