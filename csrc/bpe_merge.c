/* The merging of one piece. */
#include <string.h>

#include "bpe.h"
#include "bpe_rank.h"
#include "bpe_starts.h"
#include "cyg_table.h"

static inline int32_t char_id(const cyg_bpe *bpe, unsigned variant, uint32_t code_point)
{
    const struct cyg_char_ids *chars = bpe->chars[variant];
    const int32_t *page = chars ? chars->page[code_point >> 8] : NULL;
    return page ? page[code_point & 255] : -1;
}

void cyg_bpe_scratch_free(cyg_bpe_scratch *s)
{
    free(s->memory);
    memset(s, 0, sizeof *s);
}

/* Room for n symbols: five arrays of 32-bit numbers and a heap of at most 3 n entries. */
static int scratch_reserve(cyg_bpe_scratch *s, size_t n)
{
    if (n <= s->capacity) return 0;
    size_t capacity = n + n / 2 + 128;
    if (capacity > SIZE_MAX / 64) return -1;
    uint8_t *memory = malloc(capacity * (3 * 8 + 5 * 4));
    if (!memory) return -1;
    free(s->memory);
    s->memory = memory;
    s->capacity = capacity;
    s->heap = (uint64_t *)memory;
    uint32_t *at = (uint32_t *)(s->heap + 3 * capacity);
    s->id = (int32_t *)at;
    s->size = at + capacity;
    s->previous = at + 2 * capacity;
    s->next = at + 3 * capacity;
    s->rank = at + 4 * capacity;
    return 0;
}

/* Symbols by character, with affixes, byte fallback and the unknown token. Returns how many. */
typedef struct {
    const cyg_bpe *bpe;
    cyg_bpe_scratch *out;
    size_t count;
    uint32_t unknown; /* bytes of the unknown symbol that waits, 0: none */
} symbol_writer;

static void put_symbol(symbol_writer *w, int32_t id, size_t size)
{
    w->out->id[w->count] = id;
    w->out->size[w->count++] = (uint32_t)size;
}

static void put_unknown(symbol_writer *w)
{
    if (w->unknown) put_symbol(w, w->bpe->unk, w->unknown);
    w->unknown = 0;
}

static int has_fallback(const cyg_bpe *bpe, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bpe->byte_id[p[i]] < 0) return 0;
    return 1;
}

static void put_fallback(symbol_writer *w, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) put_symbol(w, w->bpe->byte_id[p[i]], 1);
}

static int falls_back(const cyg_bpe *bpe, unsigned variant, const uint8_t *p, size_t n)
{
    if (!bpe->byte_fallback || !has_fallback(bpe, p, n)) return 0;
    for (unsigned side = 0; side < 2; side++)
        if (variant >> side & 1 && !has_fallback(bpe, bpe->affix[side], bpe->affix_size[side])) return 0;
    return 1;
}

static void put_char(symbol_writer *w, unsigned variant, const uint8_t *p, size_t n)
{
    const cyg_bpe *bpe = w->bpe;
    int32_t id = char_id(bpe, variant, cyg_utf8_decode(p));
    if (id >= 0) {
        put_unknown(w);
        put_symbol(w, id, n);
    } else if (falls_back(bpe, variant, p, n)) {
        if (variant & 1) put_fallback(w, bpe->affix[0], bpe->affix_size[0]);
        put_fallback(w, p, n);
        if (variant & 2) put_fallback(w, bpe->affix[1], bpe->affix_size[1]);
    } else if (bpe->unk >= 0) {
        if (!bpe->fuse_unk) put_unknown(w);
        w->unknown += (uint32_t)n;
    }
}

static size_t char_symbols(const cyg_bpe *bpe, cyg_bpe_scratch *out, const uint8_t *piece, size_t length)
{
    symbol_writer w = {bpe, out, 0, 0};
    unsigned not_first = bpe->affix_size[0] ? 1 : 0, last = bpe->affix_size[1] ? 2 : 0;
    for (size_t i = 0, n; i < length; i += n) {
        n = cyg_utf8_size(piece[i]);
        put_char(&w, (i ? not_first : 0) | (i + n == length ? last : 0), piece + i, n);
    }
    put_unknown(&w);
    return w.count;
}

/* Symbols of bytes, and of characters that begin as one where `starts` is given. */
static size_t byte_symbols(const cyg_bpe *bpe, const struct cyg_starts *starts, cyg_bpe_scratch *out, const uint8_t *piece, size_t length)
{
    symbol_writer w = {bpe, out, 0, 0};
    for (size_t i = 0, n; i < length; i += n) {
        int32_t id = -1;
        if (starts && piece[i] >= 0xC0) id = cyg_start_at(starts, piece, i, length, &n);
        if (id < 0) id = bpe->byte_id[piece[i]], n = 1;
        if (id >= 0) {
            put_unknown(&w);
            put_symbol(&w, id, n);
        } else if (bpe->unk >= 0) {
            if (!bpe->fuse_unk) put_unknown(&w);
            w.unknown++;
        }
    }
    put_unknown(&w);
    return w.count;
}

/* The merge that comes first among few symbols is found by looking at all of them: key is rank and place, so ties go left. */
enum { FEW = 64, NO_KEY = INT32_MAX };

static inline int32_t pair_key(const cyg_bpe *bpe, int32_t left, int32_t right, uint32_t place)
{
    uint32_t rank = cyg_rank_of(bpe, left, right);
    return rank == CYG_NO_RANK ? NO_KEY : (int32_t)(rank << 6 | place);
}

static void merge_few(const cyg_bpe *bpe, cyg_bpe_scratch *s, int32_t *key, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) s->next[i] = i + 1, s->previous[i] = i - 1;
    for (;;) {
        int32_t least = NO_KEY;
        for (uint32_t i = 0; i < n; i++) least = key[i] < least ? key[i] : least;
        if (least == NO_KEY) return;
        uint32_t at = (uint32_t)least & 63, gone = s->next[at], after = s->next[gone];
        int32_t id = s->id[at] = bpe->merged[least >> 6];
        s->next[at] = after;
        key[gone] = NO_KEY;
        key[at] = after < n ? pair_key(bpe, id, s->id[after], at) : NO_KEY;
        if (after < n) s->previous[after] = at;
        uint32_t before = s->previous[at];
        if (before < n) key[before] = pair_key(bpe, s->id[before], id, before);
    }
}

static inline void heap_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t value = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (value <= heap[child]) break;
        heap[i] = heap[child];
    }
    heap[i] = value;
}

static inline void heap_push(uint64_t *heap, size_t *n, uint64_t value)
{
    size_t i = (*n)++;
    for (size_t parent; i && heap[parent = (i - 1) / 2] > value; i = parent) heap[i] = heap[parent];
    heap[i] = value;
}

static void offer(const cyg_bpe *bpe, cyg_bpe_scratch *s, size_t *heap_size, uint32_t left, uint32_t right)
{
    uint32_t rank = s->rank[left] = cyg_rank_of(bpe, s->id[left], s->id[right]);
    if (rank != CYG_NO_RANK) heap_push(s->heap, heap_size, (uint64_t)rank << 32 | left);
}

/* Many symbols: a heap of (rank, place). An entry holds as long as the pair at its place still has that rank. */
static void merge_many(const cyg_bpe *bpe, cyg_bpe_scratch *s, uint32_t n)
{
    size_t heap_size = 0;
    for (uint32_t i = 0; i < n; i++) {
        s->next[i] = i + 1;
        s->previous[i] = i - 1;
        s->rank[i] = i + 1 < n ? cyg_rank_of(bpe, s->id[i], s->id[i + 1]) : CYG_NO_RANK;
        if (s->rank[i] != CYG_NO_RANK) s->heap[heap_size++] = (uint64_t)s->rank[i] << 32 | i;
    }
    for (size_t i = heap_size / 2; i-- > 0;) heap_down(s->heap, heap_size, i);
    while (heap_size) {
        uint64_t top = s->heap[0];
        s->heap[0] = s->heap[--heap_size];
        if (heap_size) heap_down(s->heap, heap_size, 0);
        uint32_t at = (uint32_t)top, rank = (uint32_t)(top >> 32);
        if (s->rank[at] != rank) continue;
        uint32_t gone = s->next[at], after = s->next[gone], before = s->previous[at];
        s->id[at] = bpe->merged[rank];
        s->next[at] = after;
        s->rank[gone] = s->rank[at] = CYG_NO_RANK;
        if (after < n) {
            s->previous[after] = at;
            offer(bpe, s, &heap_size, at, after);
        }
        if (before < n) offer(bpe, s, &heap_size, before, at);
    }
}

static int write_out(const cyg_bpe_scratch *s, uint32_t n, cyg_ids *ids, cyg_ids *sizes)
{
    if (cyg_ids_reserve(ids, n) || (sizes && cyg_ids_reserve(sizes, n))) return -1;
    for (uint32_t i = 0; i < n; i = s->next[i]) {
        ids->data[ids->size++] = s->id[i];
        if (!sizes) continue;
        uint32_t size = 0;
        for (uint32_t k = i; k < s->next[i] && k < n; k++) size += s->size[k];
        sizes->data[sizes->size++] = (int32_t)size;
    }
    return 0;
}

/* Few symbols, in arrays that are closed up after each merge: moved by a fixed size, so that nothing depends on how much. */
enum { SHORT = 16, SHORT_BYTES = 4 * SHORT };

typedef struct {
    int32_t id[2 * SHORT + 2], rank[2 * SHORT + 2];
} short_symbols;

static inline int32_t short_rank(const cyg_bpe *bpe, int32_t left, int32_t right)
{
    uint32_t rank = cyg_rank_of(bpe, left, right);
    if (rank == CYG_NO_RANK) return NO_KEY;
    CYG_PREFETCH(&bpe->merged[rank]);
    return (int32_t)rank;
}

/* The symbols of a byte-level piece with the ranks of their pairs. Returns how many, 0 where they are too many or a byte has none. */
static size_t begin_short(const cyg_bpe *bpe, short_symbols *s, const uint8_t *piece, size_t length)
{
    size_t n = 0, size, bytes = 0; /* symbols, and how many of the last ones are single bytes */
    for (size_t i = 0; i < length; i += size, n++) {
        if (n == SHORT) return 0;
        int32_t id = -1;
        if (piece[i] >= 0xC0 && bpe->starts) id = cyg_start_at(bpe->starts, piece, i, length, &size);
        if (id >= 0) {
            bytes = 0;
        } else {
            id = bpe->byte_id[piece[i]];
            if (id < 0) return 0;
            size = 1;
            bytes++;
        }
        s->id[n] = id;
        if (!n) continue;
        uint32_t rank = bytes > 1 ? bpe->byte_pairs[piece[i - 1] << 8 | piece[i]] : cyg_rank_of(bpe, s->id[n - 1], id);
        s->rank[n - 1] = rank < NO_KEY ? (int32_t)rank : NO_KEY;
    }
    s->rank[n - 1] = NO_KEY;
    return n;
}

/* Writes the ids and returns how many; 0 where the piece is not short. */
static size_t merge_short(const cyg_bpe *bpe, const uint8_t *piece, size_t length, int32_t *ids)
{
    short_symbols s;
    size_t n = begin_short(bpe, &s, piece, length);
    if (!n) return 0;
    for (;;) {
        size_t at = 0;
        int32_t least = s.rank[0];
        for (size_t i = 1; i < n; i++) {
            at = s.rank[i] < least ? i : at;
            least = s.rank[i] < least ? s.rank[i] : least;
        }
        if (least == NO_KEY) break;
        s.id[at] = bpe->merged[least];
        memmove(s.id + at + 1, s.id + at + 2, SHORT * sizeof *s.id);
        memmove(s.rank + at + 1, s.rank + at + 2, SHORT * sizeof *s.rank);
        n--;
        s.rank[at] = at + 1 < n ? short_rank(bpe, s.id[at], s.id[at + 1]) : NO_KEY;
        if (at) s.rank[at - 1] = short_rank(bpe, s.id[at - 1], s.id[at]);
    }
    memcpy(ids, s.id, n * sizeof *ids);
    return n;
}

static int scratch_for(const cyg_bpe *bpe, cyg_bpe_scratch *s, size_t length)
{
    size_t affixes = bpe->affix_size[0] + bpe->affix_size[1];
    return length > INT32_MAX / (affixes + 1) ? -1 : scratch_reserve(s, length * (affixes + 1));
}

int cyg_bpe_symbols(const cyg_bpe *bpe, cyg_bpe_scratch *s, const uint8_t *piece, size_t length, cyg_ids *ids)
{
    if (scratch_for(bpe, s, length)) return -1;
    size_t n = bpe->byte_level ? byte_symbols(bpe, NULL, s, piece, length) : char_symbols(bpe, s, piece, length);
    if (cyg_ids_reserve(ids, n)) return -1;
    memcpy(ids->data + ids->size, s->id, n * sizeof *s->id);
    ids->size += n;
    return 0;
}

/* The token that a piece is without merging, or -1. */
static int32_t whole_token(const cyg_bpe *bpe, const uint8_t *piece, size_t length)
{
    if (!bpe->whole && !bpe->ignore_merges) return -1;
    int32_t id = cyg_bpe_find_token(bpe, piece, length);
    return id < 0 || bpe->ignore_merges || bpe->whole[id] ? id : -1;
}

int cyg_bpe_piece(const cyg_bpe *bpe, cyg_bpe_scratch *s, const uint8_t *piece, size_t length, cyg_ids *ids, cyg_ids *sizes)
{
    if (!length) return 0;
    int32_t whole = whole_token(bpe, piece, length);
    if (whole >= 0) return cyg_ids_push(ids, whole) || (sizes && cyg_ids_push(sizes, (int32_t)length)) ? -1 : 0;
    if (bpe->byte_level && length <= SHORT_BYTES && !sizes) {
        if (cyg_ids_reserve(ids, SHORT)) return -1;
        size_t count = merge_short(bpe, piece, length, ids->data + ids->size);
        ids->size += count;
        if (count) return 0;
    }
    if (scratch_for(bpe, s, length)) return -1;
    uint32_t n = (uint32_t)(bpe->byte_level ? byte_symbols(bpe, bpe->starts, s, piece, length) : char_symbols(bpe, s, piece, length));
    if (n <= FEW) {
        int32_t key[FEW];
        for (uint32_t i = 0; i < n; i++) key[i] = i + 1 < n ? pair_key(bpe, s->id[i], s->id[i + 1], i) : NO_KEY;
        merge_few(bpe, s, key, n);
    } else {
        merge_many(bpe, s, n);
    }
    return write_out(s, n, ids, sizes);
}
