/* The split rules as scanners over class masks: each gives exactly the matches of its regular expression. */
#include "scan_split.h"

#include "scan_starts.h"

static inline int is_any(const cyg_splitter *s, size_t p, unsigned set) { return (s->classes->classes[p] & set) != 0; }

static inline int bit_of(unsigned class_bit) { return (int)cyg_trailing_zeros(class_bit); }

/* The first place from p on, at most the limit, that is not of the class. */
static inline size_t run(const cyg_splitter *s, unsigned class_bit, size_t p)
{
    const uint8_t *mask = s->classes->mask[bit_of(class_bit)];
    for (;;) {
        uint64_t gap = ~(cyg_load64(mask + p / 8) >> (p % 8)) | UINT64_C(1) << 57;
        unsigned n = cyg_trailing_zeros(gap);
        p += n;
        if (n < 57 || p >= s->limit) return p < s->limit ? p : s->limit;
    }
}

static inline size_t char_end(const cyg_splitter *s, size_t p) { return p + cyg_utf8_size(s->text[p]); }

static inline size_t char_before(const cyg_splitter *s, size_t p)
{
    do p--;
    while ((s->text[p] & 0xC0) == 0x80);
    return p;
}

size_t cyg_contraction(const cyg_splitter *s, size_t p, int any_case)
{
    size_t left = s->limit - p;
    if (left < 2) return p;
    unsigned fold = any_case ? 0x20 : 0;
    unsigned a = s->text[p + 1] | fold, b = left > 2 ? s->text[p + 2] | fold : 0;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return p + 3;
    if (any_case && left > 2 && s->text[p + 1] == 0xC5 && s->text[p + 2] == 0xBF) return p + 3; /* the long s folds to s */
    return p;
}

/* \s+(?!\S)|\s+ : the space run at p, without its last character where text follows. */
static size_t spaces(const cyg_splitter *s, size_t p)
{
    size_t end = run(s, CYG_SPACE, p);
    if (end == s->limit) return end;
    size_t last = char_before(s, end);
    return last > p ? last : end;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ : up to the last line end of the space run, where it has one. */
static size_t lines_or_spaces(const cyg_splitter *s, size_t p)
{
    size_t end = run(s, CYG_SPACE, p);
    for (size_t q = end; q > p; q--)
        if (is_any(s, q - 1, CYG_NEWLINE)) return q;
    return spaces(s, p);
}

static size_t next_gpt2(const cyg_splitter *s, size_t p)
{
    if (s->text[p] == '\'') {
        size_t end = cyg_contraction(s, p, 0);
        if (end != p) return end;
    }
    size_t q = p + (s->text[p] == ' ' && p + 1 < s->limit && !is_any(s, p + 1, CYG_SPACE));
    unsigned kind = s->classes->classes[q] & (CYG_LETTER | CYG_NUMBER | CYG_OTHER);
    return kind ? run(s, kind, q) : spaces(s, p);
}

/* \p{N}{1,digits} */
static size_t numbers(const cyg_splitter *s, size_t p, unsigned digits)
{
    if (!digits) return run(s, CYG_NUMBER, p);
    for (unsigned n = 0; n < digits && p < s->limit && is_any(s, p, CYG_NUMBER); n++) p = char_end(s, p);
    return p;
}

/* What cl100k and its relatives do with anything but words: numbers, signs with what may trail them, spaces. */
static inline size_t next_no_word(const cyg_splitter *s, size_t p, int slash_trails)
{
    if (is_any(s, p, CYG_NUMBER)) return numbers(s, p, s->rule.digits);
    size_t q = p + (s->text[p] == ' ' && p + 1 < s->limit);
    if (!is_any(s, q, CYG_OTHER)) return lines_or_spaces(s, p);
    q = run(s, CYG_OTHER, q);
    while (q < s->limit && (is_any(s, q, CYG_NEWLINE) || (slash_trails && s->text[q] == '/'))) q++;
    return q;
}

static size_t next_cl100k(const cyg_splitter *s, size_t p)
{
    if (s->text[p] == '\'') {
        size_t end = cyg_contraction(s, p, 1);
        if (end != p) return end;
    }
    size_t q = p;
    if (!is_any(s, p, CYG_LETTER | CYG_NUMBER | CYG_NEWLINE)) q = char_end(s, p);
    if (q < s->limit && is_any(s, q, CYG_LETTER)) return run(s, CYG_LETTER, q);
    return next_no_word(s, p, 0);
}

/* [upper]*[lower]+ or else [upper]+[lower]* from q, or q where neither matches. */
static size_t cased_word(const cyg_splitter *s, size_t q, size_t p)
{
    size_t u = run(s, CYG_UPPER, q);
    if (u < s->limit && is_any(s, u, CYG_LOWER)) return run(s, CYG_LOWER, u);
    /* The capital part must give back what may also be small: up to the last such character. */
    for (size_t x = u; x > q;) {
        size_t before = char_before(s, x);
        if (is_any(s, before, CYG_LOWER)) return x;
        x = before;
    }
    /* A mark taken as the sign before the word can itself be its small part. */
    if (q > p && is_any(s, p, CYG_LOWER)) return q;
    return u;
}

static size_t next_o200k(const cyg_splitter *s, size_t p)
{
    size_t q = p;
    if (!is_any(s, p, CYG_LETTER | CYG_NUMBER | CYG_NEWLINE)) q = char_end(s, p);
    int mark = is_any(s, p, CYG_OTHER) && is_any(s, p, CYG_LOWER);
    if (mark || (q < s->limit && is_any(s, q, CYG_UPPER | CYG_LOWER))) {
        size_t end = cased_word(s, q, p);
        if (end < s->limit && s->text[end] == '\'') end = cyg_contraction(s, end, 1);
        return end;
    }
    return next_no_word(s, p, 1);
}

static inline int is_ascii_letter(uint8_t c) { return (uint8_t)((c | 0x20) - 'a') < 26; }

/* End of the match at p of one of: ASCII sign and letters; word; signs; spaces. p where none of them begins here. */
static size_t match_deepseek(const cyg_splitter *s, size_t p)
{
    const unsigned word = CYG_LETTER | CYG_UPPER; /* letters, and marks, which carry UPPER */
    if (s->text[p] < 0x80 && is_any(s, p, CYG_SIGN) && p + 1 < s->limit && is_ascii_letter(s->text[p + 1])) {
        size_t q = p + 1;
        while (q < s->limit && is_ascii_letter(s->text[q])) q++;
        return q;
    }
    size_t q = p;
    if (!is_any(s, p, CYG_LETTER | CYG_SIGN | CYG_NEWLINE)) q = char_end(s, p);
    if (q >= s->limit || !is_any(s, q, word)) q = p;
    if (is_any(s, q, word)) {
        while (q < s->limit && is_any(s, q, word)) q = run(s, is_any(s, q, CYG_UPPER) ? CYG_UPPER : CYG_LETTER, q);
        return q;
    }
    q = p + (s->text[p] == ' ' && p + 1 < s->limit);
    if (is_any(s, q, CYG_SIGN)) return run(s, CYG_NEWLINE, run(s, CYG_SIGN, q));
    return is_any(s, p, CYG_SPACE) ? lines_or_spaces(s, p) : p;
}

/* Numbers and control characters match nothing: they stay together up to the next match. */
static size_t next_deepseek(const cyg_splitter *s, size_t p)
{
    size_t end = match_deepseek(s, p);
    if (end != p) return end;
    do p = char_end(s, p);
    while (p < s->limit && match_deepseek(s, p) == p);
    return p;
}

static inline int goes_by_starts(const cyg_splitter *s) { return !s->rule.cuts && (s->rule.words == CYG_RULE_GPT2 || s->rule.words == CYG_RULE_CL100K); }

static inline int goes_by_runs(const cyg_splitter *s) { return !s->rule.cuts && s->rule.words == CYG_RULE_O200K; }

static inline int is_cjk_at(const cyg_splitter *s, size_t p)
{
    if (s->text[p] < 0xE3 || s->text[p] > 0xE9) return 0;
    uint32_t c = cyg_utf8_decode(s->text + p);
    return (c >= 0x3040 && c <= 0x30FF) || (c >= 0x4E00 && c <= 0x9FA5);
}

static int is_cut_at(const cyg_splitter *s, size_t p)
{
    if (s->rule.cuts & CYG_CUT_CJK && is_cjk_at(s, p)) return 1;
    return s->rule.cuts & ~(unsigned)CYG_CUT_CJK && is_any(s, p, CYG_NUMBER);
}

static size_t cut_end(const cyg_splitter *s, size_t p)
{
    if (is_any(s, p, CYG_NUMBER)) return numbers(s, p, s->rule.cuts & CYG_CUT_EACH_NUMBER ? 1 : s->rule.cuts & CYG_CUT_THREE_NUMBERS ? 3 : 0);
    while (p < s->length && is_cjk_at(s, p)) p = char_end(s, p);
    return p;
}

/* Moves on to the next stretch: a piece that is cut out whole, or all up to the next one. */
static void next_stretch(cyg_splitter *s)
{
    size_t p = s->at;
    s->limit = s->length;
    s->whole = s->rule.words == CYG_RULE_NONE;
    if (!s->rule.cuts) return;
    if (is_cut_at(s, p)) {
        s->limit = cut_end(s, p);
        s->whole = 1;
        return;
    }
    do p = char_end(s, p);
    while (p < s->length && !is_cut_at(s, p));
    s->limit = p;
}

/* Runs of O200K: found 64 bytes at a time from the masks, so that where the next one begins never waits for what this one is. */

static inline uint64_t word_of(const cyg_splitter *s, unsigned k, size_t word) { return cyg_load64(s->classes->mask[k] + 8 * word); }

/* Letters and marks. */
static inline uint64_t letters_of(const cyg_splitter *s, size_t word) { return word_of(s, 5, word) | word_of(s, 6, word); }

static inline uint64_t changes(uint64_t mask, uint64_t before) { return mask ^ (mask << 1 | before >> 63); }

/* Which bytes of a word begin a run; the run after a space that stands alone begins with that space. */
static uint64_t starts_of(cyg_splitter *s, size_t word)
{
    uint64_t letters = letters_of(s, word), number = word_of(s, 1, word), space = word_of(s, 3, word);
    uint64_t starts = 1;
    if (word) starts = changes(letters, letters_of(s, word - 1)) | changes(number, word_of(s, 1, word - 1)) | changes(space, word_of(s, 3, word - 1));
    else starts |= changes(letters, 0) | changes(number, 0) | changes(space, 0);
    /* A space at the end of the word stands alone unless another space follows. */
    uint64_t next = word_of(s, 3, word + 1) & 1 ? 0 : UINT64_C(1) << 63;
    uint64_t alone = word_of(s, CYG_BLANK, word) & starts & (starts >> 1 | next);
    starts &= ~(alone << 1 | (uint64_t)s->blank_before);
    s->blank_before = (int)(alone >> 63);
    size_t left = s->length - 64 * word;
    return left < 64 ? starts & ((UINT64_C(1) << left) - 1) : starts;
}

static inline size_t next_run(cyg_splitter *s)
{
    while (!s->starts) {
        if (64 * ++s->word >= s->length) return s->length;
        s->starts = starts_of(s, s->word);
    }
    size_t start = 64 * s->word + cyg_trailing_zeros(s->starts);
    s->starts &= s->starts - 1;
    return start;
}

typedef struct {
    size_t *ends;
    size_t count, capacity;
} piece_writer;

static inline void put(cyg_splitter *s, piece_writer *w, size_t end)
{
    w->ends[w->count++] = s->at = end;
}

/* White space [at, end) with text after it: its last character is left for what follows where that may take it. */
static inline void put_spaces(cyg_splitter *s, piece_writer *w, size_t end, int keeps_last)
{
    size_t last = char_before(s, end);
    if (last > s->at) put(s, w, last);
    if (!keeps_last) put(s, w, end);
}

/* Up to the last line end of [at, end), where there is one. */
static inline void put_lines(cyg_splitter *s, piece_writer *w, size_t end)
{
    for (size_t q = end; q > s->at; q--)
        if (is_any(s, q - 1, CYG_NEWLINE)) {
            put(s, w, q);
            return;
        }
}

static inline void lines_run(cyg_splitter *s, piece_writer *w, size_t end)
{
    put_lines(s, w, end);
    if (s->at == end) return;
    if (end == s->length) {
        put(s, w, end);
        return;
    }
    unsigned next = s->classes->classes[end];
    int is_word = next & (CYG_UPPER | CYG_LOWER) ? 1 : 0;
    put_spaces(s, w, end, is_word || (!(next & CYG_NUMBER) && s->text[end - 1] == ' '));
}

/* Signs [run, end): one alone goes with a word after it; line ends (and slashes) after them go with them. */
static inline void signs_run(cyg_splitter *s, piece_writer *w, size_t end)
{
    int word_follows = end < s->length && is_any(s, end, CYG_UPPER | CYG_LOWER);
    if (word_follows && s->at + cyg_utf8_size(s->text[s->at]) == end) return;
    size_t q = run(s, CYG_OTHER, end);
    while (q < s->length && (is_any(s, q, CYG_NEWLINE) || s->text[q] == '/')) q++;
    put(s, w, q);
}

/* Numbers in groups, and before them the space that does not belong to them. 0 where there was no room for all. */
static inline int numbers_run(cyg_splitter *s, piece_writer *w, size_t end)
{
    if (s->at < end && s->text[s->at] == ' ') put(s, w, s->at + 1);
    while (s->at < end) {
        if (w->count == w->capacity) return 0;
        put(s, w, numbers(s, s->at, s->rule.digits));
    }
    return 1;
}

static inline int words_run(cyg_splitter *s, piece_writer *w, size_t end)
{
    while (s->at < end) {
        if (w->count == w->capacity) return 0;
        put(s, w, next_o200k(s, s->at));
    }
    return 1;
}

static inline int any_run(cyg_splitter *s, piece_writer *w, size_t end)
{
    unsigned kind = s->classes->classes[end - 1];
    if (s->at >= end) return 1;
    if (kind & (CYG_UPPER | CYG_LOWER)) return words_run(s, w, end);
    if (kind & CYG_NUMBER) return numbers_run(s, w, end);
    else if (kind & CYG_SPACE) lines_run(s, w, end);
    else signs_run(s, w, end);
    return 1;
}

/* No run but numbers and words gives more than three pieces. */
enum { RUN_PIECES = 4 };

static size_t runs_into_pieces(cyg_splitter *s, size_t *ends, size_t capacity)
{
    piece_writer w = {ends, 0, capacity};
    while (s->run < s->length && w.count + RUN_PIECES <= capacity) {
        if (!any_run(s, &w, s->run_end)) break;
        s->run = s->run_end;
        s->run_end = s->run < s->length ? next_run(s) : s->length;
    }
    return w.count;
}

static inline uint64_t piece_starts(cyg_splitter *s, size_t word)
{
    return s->rule.words == CYG_RULE_GPT2 ? cyg_starts_gpt2(s, word) : cyg_starts_cl100k(s, word);
}

/* Pieces from their starts. */
static size_t starts_into_pieces(cyg_splitter *s, size_t *ends, size_t capacity)
{
    size_t count = 0;
    while (count < capacity && s->at < s->length) {
        while (s->starts && count < capacity) {
            ends[count++] = s->at = 64 * s->word + cyg_trailing_zeros(s->starts);
            s->starts &= s->starts - 1;
        }
        if (s->starts) break;
        if (64 * (s->word + 1) >= s->length) {
            if (count < capacity) ends[count++] = s->at = s->length;
            break;
        }
        s->word++;
        s->starts = piece_starts(s, s->word);
    }
    return count;
}

void cyg_split_begin(cyg_splitter *s, const cyg_split_rule *rule, const cyg_classes *classes, const uint8_t *text, size_t length)
{
    *s = (cyg_splitter){.text = text, .length = length, .classes = classes, .rule = *rule, .start_at = SIZE_MAX};
    if (!length) return;
    if (goes_by_starts(s)) {
        s->limit = length;
        s->starts = piece_starts(s, 0) & ~UINT64_C(1);
    } else if (goes_by_runs(s)) {
        s->limit = length;
        s->starts = starts_of(s, 0);
        s->starts &= s->starts - 1;
        s->run_end = next_run(s);
    }
}

#define PIECES(next)                                     \
    while (count < capacity && p < s->limit) {           \
        p = next(s, p);                                  \
        ends[count++] = p;                               \
    }                                                    \
    break

static size_t pieces_of_stretch(cyg_splitter *s, size_t *ends, size_t count, size_t capacity)
{
    size_t p = s->at;
    switch (s->whole ? CYG_RULE_NONE : s->rule.words) {
    case CYG_RULE_GPT2: PIECES(next_gpt2);
    case CYG_RULE_CL100K: PIECES(next_cl100k);
    case CYG_RULE_O200K: PIECES(next_o200k);
    case CYG_RULE_DEEPSEEK: PIECES(next_deepseek);
    case CYG_RULE_NONE: ends[count++] = p = s->limit;
    }
    s->at = p;
    return count;
}

size_t cyg_split_next(cyg_splitter *s, size_t *ends, size_t capacity)
{
    if (goes_by_starts(s)) return starts_into_pieces(s, ends, capacity);
    if (goes_by_runs(s)) return runs_into_pieces(s, ends, capacity);
    size_t count = 0;
    while (count < capacity && s->at < s->length) {
        if (s->at == s->limit) next_stretch(s);
        count = pieces_of_stretch(s, ends, count, capacity);
    }
    return count;
}
