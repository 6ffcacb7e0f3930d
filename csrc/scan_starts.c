/* Piece starts as bit masks. Bit i stands for byte i of the word; what a bit depends on is at most a character before and after, or rare enough to
 * be looked at by itself. */
#include "scan_starts.h"

typedef struct {
    uint64_t here, before; /* a mask, and the same moved on by one byte: what the byte before is */
} mask_pair;

/* All that the rules ask of a word. */
typedef struct {
    size_t base;
    uint64_t valid; /* bytes of the text */
    mask_pair letter, number, space, other, blank, line, wide;
    uint64_t quote;
    uint64_t runs;    /* where the kind of character changes */
    uint64_t follows; /* what is no white space and comes after some */
    uint64_t last;    /* the last byte of white space that something follows */
} view;

static inline uint64_t word_of(const cyg_splitter *s, int k, size_t word) { return cyg_load64(s->classes->mask[k] + 8 * word); }

static inline mask_pair pair_of(const cyg_splitter *s, int k, size_t word)
{
    uint64_t here = word_of(s, k, word);
    return (mask_pair){here, here << 1 | (word ? word_of(s, k, word - 1) >> 63 : 0)};
}

static inline uint64_t bit_at(size_t offset) { return UINT64_C(1) << offset; }

static inline view view_of(const cyg_splitter *s, size_t word)
{
    view v = {.base = 64 * word};
    size_t left = s->length - v.base;
    v.valid = left < 64 ? bit_at(left) - 1 : UINT64_MAX;
    v.letter = pair_of(s, 0, word);
    v.number = pair_of(s, 1, word);
    v.other = pair_of(s, 2, word);
    v.space = pair_of(s, 3, word);
    v.blank = pair_of(s, CYG_BLANK, word);
    v.wide = pair_of(s, CYG_WIDE, word);
    v.quote = word_of(s, CYG_QUOTE, word);
    v.runs = ((v.letter.here ^ v.letter.before) | (v.number.here ^ v.number.before) | (v.space.here ^ v.space.before) | (word == 0)) & v.valid;
    v.follows = ~v.space.here & v.space.before & v.valid;
    int next_follows = left > 64 && !(word_of(s, 3, word + 1) & 1);
    v.last = v.follows >> 1 | (next_follows ? v.space.here & bit_at(63) : 0);
    return v;
}

static inline int is_any(const cyg_splitter *s, size_t p, unsigned set) { return (s->classes->classes[p] & set) != 0; }

static inline size_t char_start(const cyg_splitter *s, size_t p)
{
    while ((s->text[p] & 0xC0) == 0x80) p--;
    return p;
}

static inline unsigned take_bit(uint64_t *bits)
{
    unsigned i = cyg_trailing_zeros(*bits);
    *bits &= *bits - 1;
    return i;
}

/* Where the last characters of white space before something else begin; `last` marks their last bytes. */
static inline uint64_t last_spaces(const cyg_splitter *s, const view *v, uint64_t last)
{
    uint64_t wide = last & v->wide.here, starts = last & ~wide;
    while (wide) {
        size_t p = char_start(s, v->base + take_bit(&wide));
        if (p >= v->base) starts |= bit_at(p - v->base);
    }
    /* A character that goes on into the next word begins here. */
    if (v->space.here & v->wide.here & bit_at(63) && v->valid >> 63) {
        size_t p = char_start(s, v->base + 63), end = p + cyg_utf8_size(s->text[p]);
        if (end > v->base + 64 && end < s->length && !is_any(s, end, CYG_SPACE)) starts |= bit_at(p - v->base);
    }
    return starts;
}

/* Sets or clears the start at p, which may lie in a later word: at most one such waits at a time. */
static inline void set_start(cyg_splitter *s, const view *v, uint64_t *starts, size_t p)
{
    if (p < v->base + 64) *starts |= bit_at(p - v->base);
    else s->start_at = p;
}

static inline uint64_t waiting_start(const cyg_splitter *s, const view *v)
{
    return s->start_at - v->base < 64 ? bit_at(s->start_at - v->base) : 0;
}

/* A contraction is a piece wherever its apostrophe begins one. */
static inline void cut_contractions(cyg_splitter *s, const view *v, uint64_t *starts, int any_case)
{
    uint64_t quotes = *starts & v->quote;
    while (quotes) {
        size_t p = v->base + take_bit(&quotes), end = cyg_contraction(s, p, any_case);
        if (end == p) continue;
        if (p + 1 < v->base + 64) *starts &= ~bit_at(p + 1 - v->base);
        else s->first_joins = 1;
        set_start(s, v, starts, end);
    }
}

uint64_t cyg_starts_gpt2(cyg_splitter *s, size_t word)
{
    view v = view_of(s, word);
    uint64_t starts = (v.runs & ~(v.follows & v.blank.before)) | last_spaces(s, &v, v.last) | waiting_start(s, &v);
    starts &= ~(uint64_t)s->first_joins;
    s->first_joins = 0;
    cut_contractions(s, &v, &starts, 0);
    return starts & v.valid;
}

/* Numbers in groups of so many characters; counted only where a run may be longer. */
static inline uint64_t number_groups(cyg_splitter *s, const view *v)
{
    uint64_t n = v->number.here, starts = 0;
    if (!s->rule.digits) return 0;
    if (!(n & v->number.before)) {
        s->numbers = (unsigned)(n >> 63);
        return 0;
    }
    for (unsigned i = 0; i < 64 && bit_at(i) & v->valid; i++) {
        if (!(n >> i & 1)) s->numbers = 0;
        else if ((s->text[v->base + i] & 0xC0) != 0x80 && s->numbers++ == s->rule.digits) {
            starts |= bit_at(i);
            s->numbers = 1;
        }
    }
    return starts;
}

/* One sign alone, without a space before it, goes with the letters after it. */
static inline uint64_t letters_after_sign(const cyg_splitter *s, const view *v, size_t word)
{
    uint64_t candidates = v->letter.here & ~v->letter.before & v->other.before, wide = candidates & v->wide.before;
    uint64_t earlier = v->other.before << 1 | v->blank.before << 1;
    if (word) earlier |= (word_of(s, 2, word - 1) | word_of(s, CYG_BLANK, word - 1)) >> 62 & 1;
    uint64_t joined = candidates & ~wide & ~earlier;
    while (wide) {
        unsigned i = take_bit(&wide);
        size_t p = char_start(s, v->base + i - 1);
        if (!p || !(is_any(s, p - 1, CYG_OTHER) || s->text[p - 1] == ' ')) joined |= bit_at(i);
    }
    return joined;
}

/* Line ends right after signs go with them. */
static inline void join_lines_to_signs(cyg_splitter *s, const view *v, uint64_t *starts)
{
    uint64_t lines = v->line.here & v->other.before;
    while (lines) {
        size_t p = v->base + take_bit(&lines), end = p;
        while (end < s->length && is_any(s, end, CYG_NEWLINE)) end++;
        *starts &= ~bit_at(p - v->base);
        if (end < s->length) set_start(s, v, starts, end);
    }
}

/* What comes after the last line end of white space. */
static inline uint64_t after_lines(const cyg_splitter *s, const view *v)
{
    uint64_t others = v->space.here & ~v->line.here, candidates = others & v->line.before, sum = candidates + others;
    if (!candidates || (sum >= others && !(sum & v->line.here))) return candidates;
    uint64_t starts = 0;
    while (candidates) {
        unsigned i = take_bit(&candidates);
        size_t p = v->base + i;
        while (p < s->length && is_any(s, p, CYG_SPACE) && !is_any(s, p, CYG_NEWLINE)) p++;
        if (p == s->length || !is_any(s, p, CYG_NEWLINE)) starts |= bit_at(i);
    }
    return starts;
}

uint64_t cyg_starts_cl100k(cyg_splitter *s, size_t word)
{
    view v = view_of(s, word);
    v.line = pair_of(s, 4, word);
    uint64_t takes_space = (v.letter.here & ~v.line.before) | (v.other.here & v.blank.before);
    uint64_t starts = v.runs & ~(v.follows & takes_space) & ~letters_after_sign(s, &v, word);
    starts |= last_spaces(s, &v, v.last & ~v.line.here) | after_lines(s, &v) | number_groups(s, &v) | waiting_start(s, &v);
    join_lines_to_signs(s, &v, &starts);
    s->first_joins = 0;
    cut_contractions(s, &v, &starts, 1);
    return starts & v.valid;
}
