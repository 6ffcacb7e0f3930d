/* The merging of one piece. */
#include <string.h>

#include "bpe.h"
#include "bpe_few.h"
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

/* Merges the symbols in place; `next` then leads from one that is left to the following. */
static void merge_few(const cyg_bpe *bpe, cyg_bpe_scratch *s, uint32_t n)
{
    cyg_few f;
    for (uint32_t i = 0; i < n; i++) f.id[i] = s->id[i];
    for (uint32_t i = 0; i + 1 < n; i++) f.merge[i] = cyg_merge_at(cyg_bpe_merge(bpe, s->id[i], s->id[i + 1]), i);
    cyg_few_ready(&bpe->pairs, &f, n);
    cyg_few_merge_all(&bpe->pairs, &f);
    for (uint32_t i = n, next = n; i-- > 0;) {
        s->id[i] = f.id[i];
        s->next[i] = next;
        if (f.taken >> i & 1) next = i;
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
    uint32_t rank = s->rank[left] = cyg_bpe_rank(bpe, s->id[left], s->id[right]);
    if (rank != CYG_NO_RANK) heap_push(s->heap, heap_size, (uint64_t)rank << 32 | left);
}

/* Many symbols: a heap of (rank, place). An entry holds as long as the pair at its place still has that rank. */
static void merge_many(const cyg_bpe *bpe, cyg_bpe_scratch *s, uint32_t n)
{
    size_t heap_size = 0;
    for (uint32_t i = 0; i < n; i++) {
        s->next[i] = i + 1;
        s->previous[i] = i - 1;
        s->rank[i] = i + 1 < n ? cyg_bpe_rank(bpe, s->id[i], s->id[i + 1]) : CYG_NO_RANK;
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
        s->id[at] = bpe->pairs.merged[rank];
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

int cyg_bpe_merge_piece(const cyg_bpe *bpe, cyg_bpe_scratch *s, const uint8_t *piece, size_t length, cyg_ids *ids, cyg_ids *sizes)
{
    if (scratch_for(bpe, s, length)) return -1;
    uint32_t n = (uint32_t)(bpe->byte_level ? byte_symbols(bpe, bpe->starts, s, piece, length) : char_symbols(bpe, s, piece, length));
    if (n > CYG_FEW)
        merge_many(bpe, s, n);
    else if (n)
        merge_few(bpe, s, n);
    return write_out(s, n, ids, sizes);
}

int cyg_bpe_piece(const cyg_bpe *bpe, cyg_bpe_scratch *s, const uint8_t *piece, size_t length, cyg_ids *ids, cyg_ids *sizes)
{
    if (!length) return 0;
    int32_t whole = cyg_bpe_looks_up(bpe) ? cyg_bpe_if_whole(bpe, cyg_bpe_find_token(bpe, piece, length)) : -1;
    if (whole < 0) return cyg_bpe_merge_piece(bpe, s, piece, length, ids, sizes);
    return cyg_ids_push(ids, whole) || (sizes && cyg_ids_push(sizes, (int32_t)length)) ? -1 : 0;
}
