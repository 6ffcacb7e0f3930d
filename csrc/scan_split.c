/* The split rules as scanners over class masks: each gives exactly the matches of its regular expression. */
#include "scan_split.h"

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

/* End of one of 's 't 're 've 'm 'll 'd at p, where there is an apostrophe; p where there is none. */
static size_t contraction(const cyg_splitter *s, size_t p, int any_case)
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
        size_t end = contraction(s, p, 0);
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
        size_t end = contraction(s, p, 1);
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
        if (end < s->limit && s->text[end] == '\'') end = contraction(s, end, 1);
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

void cyg_split_begin(cyg_splitter *s, const cyg_split_rule *rule, const cyg_classes *classes, const uint8_t *text, size_t length)
{
    *s = (cyg_splitter){.text = text, .length = length, .classes = classes, .rule = *rule};
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
    size_t count = 0;
    while (count < capacity && s->at < s->length) {
        if (s->at == s->limit) next_stretch(s);
        count = pieces_of_stretch(s, ends, count, capacity);
    }
    return count;
}
