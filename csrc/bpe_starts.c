/* Which characters begin as one symbol: each is merged alone, and the merges that could come between are looked up by their parts. */
#include "bpe_starts.h"

#include <string.h>

#include "bpe_tokens.h"
#include "cyg_table.h"

/* A merge that has a symbol on one of its sides: its rank and the byte beyond the symbol. */
typedef struct {
    uint32_t rank;
    int32_t next; /* the next merge of the same symbol, -1: none */
    uint8_t byte;
} crossing;

typedef struct {
    const cyg_bpe *bpe;
    crossing *all[2];  /* by merge: with its right part as the symbol, with its left part */
    int32_t *first[2]; /* by symbol: its first merge */
    uint8_t *last_byte, *first_byte;
    size_t ids;
    struct cyg_starts *starts;
} finder;

static void finder_free(finder *f)
{
    for (int side = 0; side < 2; side++) {
        free(f->all[side]);
        free(f->first[side]);
    }
    free(f->last_byte);
    free(f->first_byte);
}

static int finder_init(finder *f, const cyg_bpe *bpe, const int32_t *merges, size_t count)
{
    int32_t largest = 0;
    for (size_t i = 0; i < bpe->tokens.count; i++) largest = bpe->tokens.tokens[i + 1].id > largest ? bpe->tokens.tokens[i + 1].id : largest;
    for (size_t i = 0; i < 3 * count; i++) largest = merges[i] > largest ? merges[i] : largest;
    *f = (finder){.bpe = bpe, .ids = (size_t)largest + 1};
    f->last_byte = calloc(f->ids, 1);
    f->first_byte = calloc(f->ids, 1);
    for (int side = 0; side < 2; side++) {
        f->all[side] = malloc((count + 1) * sizeof *f->all[side]);
        f->first[side] = malloc(f->ids * sizeof *f->first[side]);
        if (!f->all[side] || !f->first[side]) return -1;
        memset(f->first[side], 0xFF, f->ids * sizeof *f->first[side]);
    }
    return f->last_byte && f->first_byte ? 0 : -1;
}

static void add_crossing(finder *f, int side, size_t merge, int32_t symbol, uint8_t byte)
{
    f->all[side][merge] = (crossing){(uint32_t)merge, f->first[side][symbol], byte};
    f->first[side][symbol] = (int32_t)merge;
}

/* Merges across an end of a character of several bytes: one that begins with their right part, or one that ends with their left part. */
static void list_crossings(finder *f, const int32_t *merges, size_t count)
{
    for (size_t i = 0; i < f->bpe->tokens.count; i++) {
        const struct cyg_token *t = &f->bpe->tokens.tokens[i + 1];
        if (!t->size) continue;
        f->first_byte[t->id] = t->bytes[0];
        f->last_byte[t->id] = t->bytes[t->size - 1];
    }
    for (size_t i = 0; i < count; i++) {
        const int32_t *m = merges + 3 * i;
        uint8_t left = f->last_byte[m[0]], right = f->first_byte[m[1]];
        if (right >= 0xC0) add_crossing(f, 0, i, m[1], left);
        if (left >= 0x80 && (right & 0xC0) != 0x80) add_crossing(f, 1, i, m[0], right);
    }
}

/* The bytes across which a symbol may merge at `rank` or before. */
static uint64_t minded(const finder *f, int side, int32_t symbol, uint32_t rank)
{
    uint64_t bytes = 0;
    for (int32_t i = f->first[side][symbol]; i >= 0; i = f->all[side][i].next)
        if (f->all[side][i].rank <= rank) bytes |= UINT64_C(1) << (f->all[side][i].byte & 63);
    return bytes;
}

/* Merges a character alone. Returns its token, or -1; the symbols that stand at its ends meanwhile, and the largest rank. */
typedef struct {
    int32_t ends[2][4];
    int count;
    uint32_t rank;
} course;

static int32_t merge_alone(const cyg_bpe *bpe, const uint8_t *bytes, size_t n, course *c)
{
    int32_t symbol[4];
    *c = (course){.count = 0};
    for (size_t i = 0; i < n; i++)
        if ((symbol[i] = bpe->byte_id[bytes[i]]) < 0) return -1;
    for (;; n--) {
        c->ends[0][c->count] = symbol[0];
        c->ends[1][c->count++] = symbol[n - 1];
        if (n == 1) return symbol[0];
        uint32_t least = CYG_NO_RANK;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            uint32_t rank = cyg_bpe_rank(bpe, symbol[i], symbol[i + 1]);
            if (rank < least) least = rank, at = i;
        }
        if (least == CYG_NO_RANK) return -1;
        c->rank = least > c->rank ? least : c->rank;
        symbol[at] = bpe->pairs.merged[least];
        memmove(symbol + at + 1, symbol + at + 2, (n - at - 2) * sizeof *symbol);
    }
}

/* The class of these neighbours, or CYG_START_CLASSES where there are too many. */
static unsigned class_of(struct cyg_starts *s, uint64_t before, uint64_t after)
{
    unsigned k = s->classes;
    while (k-- > 0)
        if (s->before[k] == before && s->after[k] == after) return k;
    if (s->classes == CYG_START_CLASSES) return CYG_START_CLASSES;
    s->before[s->classes] = before;
    s->after[s->classes] = after;
    return s->classes++;
}

static int add_start(finder *f, const uint8_t *bytes, size_t n, uint32_t code)
{
    course c;
    int32_t id = merge_alone(f->bpe, bytes, n, &c);
    if (id < 0) return 0;
    uint64_t before = 0, after = 0;
    for (int i = 0; i < c.count; i++) {
        before |= minded(f, 0, c.ends[0][i], c.rank);
        after |= minded(f, 1, c.ends[1][i], c.rank);
    }
    unsigned class = class_of(f->starts, before, after);
    if (class == CYG_START_CLASSES) return 0;
    uint32_t **page = &f->starts->page[code >> 8];
    if (!*page) {
        if (!(*page = malloc(256 * sizeof **page))) return -1;
        memset(*page, 0xFF, 256 * sizeof **page);
    }
    (*page)[code & 255] = (uint32_t)id | class << CYG_START_ID_BITS;
    return 0;
}

static int add_starts(finder *f)
{
    for (size_t i = 0; i < f->bpe->tokens.count; i++) {
        const struct cyg_token *t = &f->bpe->tokens.tokens[i + 1];
        size_t size;
        if (t->size < 2 || t->size > 4) continue;
        uint32_t code = cyg_wide_at(t->bytes, 0, t->size, &size);
        if (code && size == t->size && add_start(f, t->bytes, size, code)) return -1;
    }
    return 0;
}

void cyg_starts_free(struct cyg_starts *starts)
{
    if (!starts) return;
    for (int p = 0; p < 0x1100; p++) free(starts->page[p]);
    free(starts);
}

static int has_all_bytes(const cyg_bpe *bpe)
{
    for (int b = 0; b < 256; b++)
        if (bpe->byte_id[b] < 0) return 0;
    return 1;
}

int cyg_bpe_find_starts(cyg_bpe *bpe, const int32_t *merges, size_t count)
{
    if (!has_all_bytes(bpe)) return 0;
    finder f;
    int status = finder_init(&f, bpe, merges, count);
    bpe->starts = f.starts = calloc(1, sizeof *f.starts);
    if (!status && f.starts) {
        list_crossings(&f, merges, count);
        status = add_starts(&f);
    } else {
        status = -1;
    }
    finder_free(&f);
    return status;
}
