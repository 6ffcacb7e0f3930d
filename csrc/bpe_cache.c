/* Encoding of cut text through the piece cache. */
#include "bpe_cache.h"

#include <string.h>

#include "bpe_tokens.h"
#include "cyg_table.h"

enum { LINE_BITS = 17, LONG_BITS = 17, LONG_WAYS = 4, BATCH = 128 };
enum { ID_BITS = 20, ID_MASK = (1 << ID_BITS) - 1, IN_ARENA = 0xFFF };
#define ARENA_SIZE ((uint32_t)8 << 20)

#if defined(__GNUC__) || defined(__clang__)
#define RARELY(x) __builtin_expect(!!(x), 0)
#define APART __attribute__((noinline))
#else
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
    uint64_t low, high; /* of a long piece: its hash, in low */
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

/* Line `line` (0 or 1) of the pair that may hold a piece. */
static inline cyg_short_piece *line_at(const looked_up *piece, uintptr_t line) { return (cyg_short_piece *)((uintptr_t)piece->line ^ line * 2 * sizeof *piece->line); }

static inline const cyg_short_piece *recall_from(const looked_up *piece, const cyg_short_piece *e)
{
    e += (size_t)(e[1].low == piece->low) & (size_t)(e[1].high == piece->high);
    return e->low == piece->low && e->high == piece->high ? e : NULL;
}

static inline const cyg_short_piece *recall_short(const looked_up *piece)
{
    const cyg_short_piece *e = recall_from(piece, piece->line);
    return RARELY(!e) ? recall_from(piece, line_at(piece, 1)) : e;
}

/* Writes all four places, of which only the first ones count: no branch on their number. */
static inline int append_short(const cyg_bpe_space *space, cyg_ids *ids, const cyg_short_piece *e)
{
    uint32_t count = e->ids[0] >> ID_BITS;
    if (RARELY(count == IN_ARENA)) {
        if (cyg_ids_reserve(ids, e->ids[2])) return -1;
        memcpy(ids->data + ids->size, space->arena + e->ids[1], e->ids[2] * sizeof(int32_t));
        ids->size += e->ids[2];
        return 0;
    }
    if (RARELY(cyg_ids_reserve(ids, CYG_SHORT_IDS))) return -1;
    int32_t *out = ids->data + ids->size;
    for (int k = 0; k < CYG_SHORT_IDS; k++) out[k] = (int32_t)(e->ids[k] & ID_MASK);
    ids->size += count;
    return 0;
}

/* So many bytes of the arena, after forgetting all where it is full. */
static uint32_t arena_place(cyg_bpe_space *space, size_t size)
{
    if (size > ARENA_SIZE - space->arena_used) {
        memset(space->lines, 0, ((size_t)2 << LINE_BITS) * sizeof *space->lines);
        memset(space->longs, 0, ((size_t)1 << LONG_BITS) * sizeof *space->longs);
        space->arena_used = 4;
    }
    uint32_t place = space->arena_used;
    space->arena_used += (uint32_t)size;
    return place;
}

static void remember_short(cyg_bpe_space *space, const looked_up *piece, const int32_t *ids, size_t count)
{
    cyg_short_piece e = {piece->low, piece->high, {0}};
    if (count <= CYG_SHORT_IDS) {
        for (size_t k = 0; k < count; k++) e.ids[k] = (uint32_t)ids[k];
        e.ids[0] |= (uint32_t)count << ID_BITS;
    } else {
        e.ids[0] = (uint32_t)IN_ARENA << ID_BITS;
        e.ids[1] = arena_place(space, count * sizeof *ids);
        e.ids[2] = (uint32_t)count;
        memcpy(space->arena + e.ids[1], ids, count * sizeof *ids);
    }
    cyg_short_piece *first = piece->line, *second = line_at(piece, 1);
    if (first[1].high && (!second[1].high || space->turn++ & 1)) {
        second[1] = second[0];
        second[0] = first[1];
    }
    first[1] = first[0];
    first[0] = e;
}

static inline void mix(uint64_t *a, uint64_t *b, const uint8_t *p)
{
    *a = (*a ^ cyg_load64(p)) * UINT64_C(0xD6E8FEB86659FD93);
    *b = (*b ^ cyg_load64(p + 8)) * UINT64_C(0xBF58476D1CE4E5B9);
    *a ^= *a >> 29;
    *b ^= *b >> 31;
}

/* At least 16 bytes, by 16, the last ones overlapping those before. */
static uint64_t hash_long(const uint8_t *p, size_t n)
{
    uint64_t a = n, b = UINT64_C(0x9E3779B97F4A7C15);
    for (; n > 16; p += 16, n -= 16) mix(&a, &b, p);
    mix(&a, &b, p + n - 16);
    a = (a ^ (b << 17 | b >> 47)) * UINT64_C(0x94D049BB133111EB);
    return a ^ a >> 31;
}

static size_t padded(size_t length) { return (length + 3) & ~(size_t)3; }

/* The entries that may hold a piece, side by side. */
static cyg_long_piece *long_line(const cyg_bpe_space *space, uint64_t hash) { return &space->longs[hash >> (64 - LONG_BITS) & ~(uint64_t)(LONG_WAYS - 1)]; }

/* The entry with this hash, or NULL. */
static inline const cyg_long_piece *find_long(const cyg_bpe_space *space, uint64_t hash)
{
    const cyg_long_piece *e = long_line(space, hash);
    for (int k = 0; k < LONG_WAYS; k++)
        if (e[k].hash == hash && e[k].offset) return &e[k];
    return NULL;
}

static int recall_long(cyg_bpe_space *space, const uint8_t *piece, size_t length, uint64_t hash, cyg_ids *ids)
{
    const cyg_long_piece *e = find_long(space, hash);
    if (!e || e->length != length) return 0;
    const uint8_t *data = space->arena + e->offset;
    if (memcmp(data, piece, length) != 0) return 0;
    if (cyg_ids_reserve(ids, e->count)) return -1;
    memcpy(ids->data + ids->size, data + padded(length), e->count * sizeof(int32_t));
    ids->size += e->count;
    return 1;
}

static void remember_long(cyg_bpe_space *space, const uint8_t *piece, size_t length, uint64_t hash, const int32_t *ids, size_t count)
{
    if (count > UINT16_MAX) return;
    uint32_t place = arena_place(space, padded(length) + count * sizeof(int32_t));
    uint8_t *data = space->arena + place;
    memcpy(data, piece, length);
    memcpy(data + padded(length), ids, count * sizeof(int32_t));
    cyg_long_piece *line = long_line(space, hash);
    memmove(line + 1, line, (LONG_WAYS - 1) * sizeof *line);
    line[0] = (cyg_long_piece){hash, place, (uint16_t)length, (uint16_t)count};
}

static APART int encode_long(const cyg_bpe *bpe, cyg_bpe_space *space, const looked_up *piece, cyg_ids *ids)
{
    if (piece->length > CYG_LONG_MAX) return cyg_bpe_piece(bpe, &space->scratch, piece->start, piece->length, ids, NULL);
    int found = recall_long(space, piece->start, piece->length, piece->low, ids);
    if (found) return found < 0 ? -1 : 0;
    size_t before = ids->size;
    if (cyg_bpe_piece(bpe, &space->scratch, piece->start, piece->length, ids, NULL)) return -1;
    remember_long(space, piece->start, piece->length, piece->low, ids->data + before, ids->size - before);
    return 0;
}

static int learn(const cyg_bpe *bpe, cyg_bpe_space *space, const looked_up *piece, cyg_ids *ids)
{
    size_t before = ids->size;
    if (cyg_bpe_piece(bpe, &space->scratch, piece->start, piece->length, ids, NULL)) return -1;
    remember_short(space, piece, ids->data + before, ids->size - before);
    ids->size = before;
    return 0;
}

/* Those that are in the second line of theirs neither; the first lines were looked at. */
static size_t keep_unknown(const looked_up **pieces, size_t count)
{
    size_t kept = 0;
    for (size_t k = 0; k < count; k++)
        if (!recall_from(pieces[k], line_at(pieces[k], 1))) pieces[kept++] = pieces[k];
    return kept;
}

/* Asks the memory for the tokens that pieces may be: one step for all of them, then the next. */
static void expect_tokens(const cyg_bpe *bpe, const looked_up *const *pieces, size_t count)
{
    uint64_t hashes[BATCH];
    const struct cyg_token *tokens[BATCH];
    for (size_t k = 0; k < count; k++) hashes[k] = cyg_bpe_expect_slot(bpe, pieces[k]->start, pieces[k]->length);
    for (size_t k = 0; k < count; k++) tokens[k] = cyg_bpe_expect_token(bpe, hashes[k]);
    for (size_t k = 0; k < count; k++)
        if (tokens[k]) CYG_PREFETCH(tokens[k]->bytes);
}

/* Puts short pieces of a batch that are not in the cache there; the memory is asked for what each needs first before the first of them is begun. */
static APART int learn_short(const cyg_bpe *bpe, cyg_bpe_space *space, const looked_up *batch, size_t count, cyg_ids *ids)
{
    const looked_up *missing[BATCH];
    size_t n = 0;
    for (size_t k = 0; k < count; k++) {
        if (batch[k].length > CYG_SHORT_BYTES || recall_from(&batch[k], batch[k].line)) continue;
        CYG_PREFETCH(line_at(&batch[k], 1));
        missing[n++] = &batch[k];
    }
    n = keep_unknown(missing, n);
    expect_tokens(bpe, missing, n);
    for (size_t k = 0; k < n; k++)
        if (!recall_short(missing[k]) && learn(bpe, space, missing[k], ids)) return -1;
    return 0;
}

static APART void locate_long(cyg_bpe_space *space, looked_up *piece)
{
    if (piece->length > CYG_LONG_MAX) return;
    piece->low = hash_long(piece->start, piece->length);
    CYG_PREFETCH(long_line(space, piece->low));
}

static APART void prefetch_stored(cyg_bpe_space *space, const looked_up *piece)
{
    if (piece->length > CYG_LONG_MAX) return;
    const cyg_long_piece *e = find_long(space, piece->low);
    if (!e) return;
    CYG_PREFETCH(space->arena + e->offset);
    CYG_PREFETCH(space->arena + e->offset + 64);
}

/* Where the pieces of a batch lie in the tables: all are asked for before the first is read. */
static void locate(cyg_bpe_space *space, looked_up *batch, const uint8_t *text, const uint8_t *end, size_t begin, const size_t *ends, size_t count)
{
    looked_up *longs[BATCH];
    size_t n = 0;
    for (size_t k = 0; k < count; k++) {
        looked_up *piece = &batch[k];
        piece->start = text + begin;
        piece->length = ends[k] - begin;
        begin = ends[k];
        if (RARELY(piece->length > CYG_SHORT_BYTES)) {
            locate_long(space, longs[n++] = piece);
            continue;
        }
        short_key(piece, end);
        piece->line = space->lines + 2 * line_of(piece->low, piece->high);
        CYG_PREFETCH(piece->line);
    }
    for (size_t k = 0; k < n; k++) prefetch_stored(space, longs[k]);
}

int cyg_bpe_encode_pieces(const cyg_bpe *bpe, cyg_bpe_space *space, const uint8_t *text, size_t length, size_t begin, const size_t *ends, size_t count,
                          cyg_ids *ids)
{
    looked_up batch[BATCH];
    if (space_ready(space)) return -1;
    for (size_t done = 0; done < count; done += BATCH) {
        size_t n = count - done < BATCH ? count - done : BATCH;
        locate(space, batch, text, text + length, begin, ends + done, n);
        begin = ends[done + n - 1];
        for (size_t k = 0; k < n; k++) {
            const looked_up *piece = &batch[k];
            if (RARELY(piece->length > CYG_SHORT_BYTES)) {
                if (encode_long(bpe, space, piece, ids)) return -1;
                continue;
            }
            const cyg_short_piece *e;
            for (size_t ahead = n - k; RARELY(!(e = recall_short(piece))); ahead = 1)
                if (learn_short(bpe, space, piece, ahead, ids)) return -1;
            if (append_short(space, ids, e)) return -1;
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
