/* Covering pieces with tokens, and the tables for it. */
#include "bpe_cover.h"

#include <string.h>

#include "bpe_rank.h"
#include "bpe_tokens.h"
#include "cyg_table.h"
#include "scan_classes.h"

#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define PREFETCH(p) ((void)0)
#endif

/* How a token comes about when its bytes are merged alone; rank SYMBOL for the symbol of a byte, NEVER where it does not come about. */
typedef struct {
    int32_t left, right, rank;
} making;
enum { SYMBOL = -1, NEVER = -2 };

/* Tokens of at most WINDOW bytes, by their bytes. */
enum { WINDOW = 16, FILTER_BITS = 3, CROSSING_BITS = 14 };
typedef struct {
    uint64_t key;    /* the bytes, or a hash of more than 8 */
    uint32_t id;
    uint8_t length;  /* 0: empty slot */
    uint8_t merges;  /* it comes about by merging */
} slot;

struct cyg_bpe_cover {
    making *made;          /* by id */
    size_t ids;
    slot *slots;
    uint64_t *filter;      /* a bit for each of many hashes: most byte strings that are no token are told by it alone */
    unsigned bits;
    const uint8_t **bytes; /* by id, of tokens longer than 8 bytes */
    uint8_t longest[65536]; /* by the first two bytes: length of the longest token in the table */
};

#define M(n) (UINT64_MAX >> (64 - 8 * (n)))
static const uint64_t low_mask[WINDOW + 1] = {0, M(1), M(2), M(3), M(4), M(5), M(6), M(7), M(8), M(8), M(8), M(8), M(8), M(8), M(8), M(8), M(8)};
static const uint64_t high_mask[WINDOW + 1] = {0, 0, 0, 0, 0, 0, 0, 0, 0, M(1), M(2), M(3), M(4), M(5), M(6), M(7), M(8)};

typedef struct {
    uint64_t key, hash;
} spot;

static inline spot spot_of(uint64_t low, uint64_t high, size_t length)
{
    uint64_t key = low & low_mask[length];
    if (length > 8) key = (key * UINT64_C(0xD6E8FEB86659FD93)) ^ (key >> 32) ^ ((high & high_mask[length]) * UINT64_C(0xBF58476D1CE4E5B9));
    uint64_t mixed = (key ^ key >> 29) + length;
    return (spot){key, mixed * UINT64_C(0x9E3779B97F4A7C15)};
}

static inline const slot *find_from(const struct cyg_bpe_cover *c, size_t i, uint64_t key, const uint8_t *p, size_t length)
{
    size_t mask = ((size_t)1 << c->bits) - 1;
    for (; c->slots[i].length; i = (i + 1) & mask) {
        const slot *s = &c->slots[i];
        if (s->key == key && s->length == length && (length <= 8 || memcmp(c->bytes[s->id], p, length) == 0)) return s;
    }
    return NULL;
}

/* Whether a merge crosses a boundary: 1 if the pair at hand merges before its ends go elsewhere, 0 if there is no earlier pair, -1 with the pair that
 * stood there before. */
static inline int is_crossed_now(const cyg_bpe *bpe, cyg_edge *e)
{
    uint32_t rank = cyg_rank_of(bpe, e->a, e->b);
    /* Of equal pairs the left one merges first: that of a, then a with b, then that of b. */
    if (rank < e->la && rank <= e->lb) return 1;
    const making *ma = &bpe->cover->made[e->a], *mb = &bpe->cover->made[e->b];
    if (ma->rank > mb->rank) {
        e->la = (uint32_t)ma->rank;
        e->a = ma->right;
    } else {
        if (mb->rank == SYMBOL) return 0;
        e->lb = (uint32_t)mb->rank;
        e->b = mb->left;
    }
    return -1;
}

/* Whether the two come to stand side by side when their bytes are merged together. */
static int can_meet(const cyg_bpe *bpe, int32_t a, int32_t b)
{
    const making *ma = &bpe->cover->made[a], *mb = &bpe->cover->made[b];
    if (ma->rank == NEVER || mb->rank == NEVER) return 0;
    if (ma->rank == SYMBOL && mb->rank == SYMBOL) return 1;
    cyg_edge e = {a, mb->left, CYG_NO_RANK, (uint32_t)mb->rank};
    if (ma->rank > mb->rank) e = (cyg_edge){ma->right, b, (uint32_t)ma->rank, CYG_NO_RANK};
    int crossed;
    do crossed = is_crossed_now(bpe, &e);
    while (crossed < 0);
    return !crossed;
}

/* Loading */

static int symbols_are_there(const cyg_bpe *bpe, struct cyg_bpe_cover *c)
{
    for (int b = 0; b < 256; b++) {
        int32_t id = bpe->byte_id[b];
        if (id < 0 || (size_t)id >= c->ids || c->made[id].rank == SYMBOL) return 0;
        c->made[id].rank = SYMBOL;
    }
    return 1;
}

/* By rank, so that the makings of a merge's parts are known, and of smaller ranks, where they have any. */
static void find_makings(const cyg_bpe *bpe, const int32_t *merges, size_t count)
{
    struct cyg_bpe_cover *c = bpe->cover;
    for (size_t i = 0; i < count; i++) {
        const int32_t *m = merges + 3 * i;
        if (c->made[m[2]].rank == NEVER && cyg_rank_of(bpe, m[0], m[1]) == i && can_meet(bpe, m[0], m[1])) c->made[m[2]] = (making){m[0], m[1], (int32_t)i};
    }
}

static void add_token(struct cyg_bpe_cover *c, const struct cyg_token *token)
{
    uint8_t window[WINDOW] = {0};
    memcpy(window, token->bytes, token->size);
    spot at = spot_of(cyg_load64(window), cyg_load64(window + 8), token->size);
    uint64_t bit = at.hash >> (64 - c->bits - FILTER_BITS);
    c->filter[bit >> 6] |= UINT64_C(1) << (bit & 63);
    size_t mask = ((size_t)1 << c->bits) - 1, i = (size_t)(at.hash >> (64 - c->bits));
    while (c->slots[i].length) i = (i + 1) & mask;
    c->slots[i] = (slot){at.key, (uint32_t)token->id, (uint8_t)token->size, c->made[token->id].rank != NEVER};
    uint8_t *longest = &c->longest[window[0] << 8 | window[1]];
    if (token->size > *longest) *longest = (uint8_t)token->size;
}

static int fill_table(struct cyg_bpe_cover *c, const struct cyg_token_table *tokens)
{
    c->bits = cyg_bits_for(tokens->count);
    c->slots = cyg_table_alloc(((size_t)1 << c->bits) * sizeof *c->slots);
    c->filter = cyg_table_alloc((size_t)1 << c->bits << FILTER_BITS >> 3);
    c->bytes = calloc(c->ids, sizeof *c->bytes);
    if (!c->slots || !c->filter || !c->bytes) return -1;
    for (size_t i = 0; i < tokens->count; i++) {
        const struct cyg_token *token = &tokens->tokens[i];
        c->bytes[token->id] = token->bytes;
        if (token->size && token->size <= WINDOW) add_token(c, token);
    }
    return 0;
}

/* Each id for one token only, and every id of the merges among them. */
static int ids_are_distinct(const struct cyg_token_table *tokens, uint8_t *seen)
{
    for (size_t i = 0; i < tokens->count; i++)
        if (seen[tokens->tokens[i].id]++) return 0;
    return 1;
}

static size_t ids_of(const struct cyg_token_table *tokens, const int32_t *merges, size_t count)
{
    int32_t largest = 0;
    for (size_t i = 0; i < tokens->count; i++) largest = tokens->tokens[i].id > largest ? tokens->tokens[i].id : largest;
    for (size_t i = 0; i < 3 * count; i++) largest = merges[i] > largest ? merges[i] : largest;
    return (size_t)largest + 1;
}

static int fill(const cyg_bpe *bpe, struct cyg_bpe_cover *c, const int32_t *merges, size_t count, uint8_t *seen)
{
    for (size_t i = 0; i < c->ids; i++) c->made[i] = (making){-1, -1, NEVER};
    if (!ids_are_distinct(bpe->tokens, seen) || !symbols_are_there(bpe, c)) return 0;
    find_makings(bpe, merges, count);
    return fill_table(c, bpe->tokens) ? -1 : 1;
}

int cyg_bpe_add_cover(cyg_bpe *bpe, const int32_t *merges, size_t count)
{
    struct cyg_bpe_cover *c = bpe->cover = calloc(1, sizeof *c);
    if (!c) return -1;
    c->ids = ids_of(bpe->tokens, merges, count);
    c->made = cyg_table_alloc(c->ids * sizeof *c->made);
    uint8_t *seen = calloc(c->ids, 1);
    int done = c->made && seen ? fill(bpe, c, merges, count, seen) : -1;
    free(seen);
    if (done > 0) return 0;
    cyg_bpe_cover_free(c);
    bpe->cover = NULL;
    return done;
}

void cyg_bpe_cover_free(struct cyg_bpe_cover *c)
{
    if (!c) return;
    free(c->made);
    free(c->slots);
    free(c->filter);
    free(c->bytes);
    free(c);
}

/* Covering */

enum { CANDIDATE, BOUNDARY, WALK };

static inline uint8_t longest_at(const struct cyg_bpe_cover *c, const uint8_t *p, size_t left)
{
    uint8_t longest = c->longest[p[0] << 8 | p[1]], alone = c->longest[p[0] << 8];
    if (left == 1 || alone > longest) longest = alone;
    return (uint8_t)(longest < left ? longest : left);
}

static int finish(cyg_cover *run, size_t count)
{
    run->count = count;
    return 1;
}

/* Goes on to the next length that may be a token, or back to the token before. */
static int next_candidate(const struct cyg_bpe_cover *c, cyg_cover *run)
{
    run->stage = CANDIDATE;
    for (;;) {
        struct cyg_cover_place *here = &run->places[run->depth];
        const uint8_t *p = run->bytes + here->at;
        uint64_t low = cyg_load64(p), high = cyg_load64(p + 8);
        for (; here->length; here->length--) {
            spot at = spot_of(low, high, here->length);
            uint64_t bit = at.hash >> (64 - c->bits - FILTER_BITS);
            if (!(c->filter[bit >> 6] >> (bit & 63) & 1)) continue;
            run->key = at.key;
            run->slot = (size_t)(at.hash >> (64 - c->bits));
            PREFETCH(&c->slots[run->slot]);
            return 0;
        }
        if (!run->depth) return finish(run, 0);
        run->depth--;
    }
}

/* Takes the token at hand. */
static int take(const struct cyg_bpe_cover *c, cyg_cover *run)
{
    size_t at = (size_t)run->places[run->depth].at + run->found_length;
    run->ids[run->depth++] = run->found;
    if (at == run->length) return finish(run, run->depth);
    run->places[run->depth] = (struct cyg_cover_place){(uint8_t)at, longest_at(c, run->bytes + at, run->length - at)};
    return next_candidate(c, run);
}

static inline uint64_t pair_of(const cyg_cover *run) { return (uint64_t)(uint32_t)run->ids[run->depth - 1] << 21 | (uint64_t)(uint32_t)run->found << 1 | UINT64_C(1) << 63; }

static inline uint64_t *known_crossing(uint64_t *crossings, uint64_t pair) { return &crossings[pair * UINT64_C(0x9E3779B97F4A7C15) >> (64 - CROSSING_BITS)]; }

static inline void look_ahead(const cyg_bpe *bpe, const cyg_cover *run)
{
    uint64_t bit = cyg_pair_hash(cyg_pair_key(run->edge.a, run->edge.b)) >> (64 - bpe->pair_bits - CYG_PAIR_FILTER_BITS);
    PREFETCH(&bpe->pair_filter[bit >> 6]);
    PREFETCH(&bpe->cover->made[run->edge.a]);
    PREFETCH(&bpe->cover->made[run->edge.b]);
}

static int check_candidate(const cyg_bpe *bpe, uint64_t *crossings, cyg_cover *run)
{
    const struct cyg_bpe_cover *c = bpe->cover;
    struct cyg_cover_place *here = &run->places[run->depth];
    size_t length = here->length--;
    const slot *s = find_from(c, run->slot, run->key, run->bytes + here->at, length);
    if (!s || (!s->merges && !(bpe->ignore_merges && length == run->length))) return next_candidate(c, run);
    run->found = (int32_t)s->id;
    run->found_length = length;
    if (!run->depth) return take(c, run);
    run->stage = BOUNDARY;
    run->edge = (cyg_edge){run->ids[run->depth - 1], run->found, CYG_NO_RANK, CYG_NO_RANK};
    PREFETCH(known_crossing(crossings, pair_of(run)));
    look_ahead(bpe, run);
    return 0;
}

static int walk_boundary(const cyg_bpe *bpe, uint64_t *crossings, cyg_cover *run)
{
    uint64_t pair = pair_of(run), *known = known_crossing(crossings, pair);
    int crossed = run->stage == BOUNDARY && *known >> 1 == pair >> 1 ? (int)(*known & 1) : is_crossed_now(bpe, &run->edge);
    if (crossed < 0) {
        run->stage = WALK;
        look_ahead(bpe, run);
        return 0;
    }
    *known = pair | (uint64_t)crossed;
    return crossed ? next_candidate(bpe->cover, run) : take(bpe->cover, run);
}

int cyg_cover_step(const cyg_bpe *bpe, uint64_t *crossings, cyg_cover *run)
{
    if (!run->budget--) return finish(run, 0);
    return run->stage == CANDIDATE ? check_candidate(bpe, crossings, run) : walk_boundary(bpe, crossings, run);
}

int cyg_cover_begin(const cyg_bpe *bpe, cyg_cover *run, const uint8_t *piece, size_t length)
{
    const struct cyg_bpe_cover *c = bpe->cover;
    memcpy(run->bytes, piece, length);
    memset(run->bytes + length, 0, WINDOW);
    run->length = length;
    run->depth = 0;
    run->budget = 32 + 8 * (unsigned)length;
    run->places[0] = (struct cyg_cover_place){0, longest_at(c, run->bytes, length)};
    if (length > WINDOW) {
        int32_t whole = cyg_bpe_find_token(bpe, piece, length);
        if (whole >= 0 && (c->made[whole].rank != NEVER || bpe->ignore_merges)) {
            run->ids[0] = whole;
            return finish(run, 1);
        }
    }
    return next_candidate(c, run);
}

uint64_t *cyg_cover_crossings(cyg_bpe_scratch *s)
{
    if (!s->crossings) s->crossings = cyg_table_alloc(((size_t)1 << CROSSING_BITS) * sizeof *s->crossings);
    return s->crossings;
}
