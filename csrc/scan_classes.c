/* Classification of UTF-8 into class bytes and bit masks. */
#include "scan_classes.h"

#include <stdlib.h>

#include "unicode.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { SPACE = CYG_SPACE, LINE = CYG_SPACE | CYG_NEWLINE, OTHER = CYG_OTHER, SIGN = CYG_OTHER | CYG_SIGN };
enum { CAPITAL = CYG_LETTER | CYG_UPPER, SMALL = CYG_LETTER | CYG_LOWER, BOTH = CAPITAL | SMALL, MARK = CYG_OTHER | CYG_UPPER | CYG_LOWER };

static const uint8_t by_category[32] = {
    [CYG_CN] = OTHER, [CYG_LU] = CAPITAL, [CYG_LL] = SMALL, [CYG_LT] = CAPITAL, [CYG_LM] = BOTH, [CYG_LO] = BOTH,
    [CYG_MN] = MARK, [CYG_MC] = MARK, [CYG_ME] = MARK, [CYG_ND] = CYG_NUMBER, [CYG_NL] = CYG_NUMBER, [CYG_NO] = CYG_NUMBER,
    [CYG_PC] = SIGN, [CYG_PD] = SIGN, [CYG_PS] = SIGN, [CYG_PE] = SIGN, [CYG_PI] = SIGN, [CYG_PF] = SIGN, [CYG_PO] = SIGN,
    [CYG_SM] = SIGN, [CYG_SC] = SIGN, [CYG_SK] = SIGN, [CYG_SO] = SIGN, [CYG_ZS] = SPACE, [CYG_ZL] = SPACE, [CYG_ZP] = SPACE,
    [CYG_CC] = OTHER, [CYG_CF] = OTHER, [CYG_CS] = OTHER, [CYG_CO] = OTHER, OTHER, OTHER
};

#define TIMES_8(x) x, x, x, x, x, x, x, x
static const uint8_t ascii[128] = {
    TIMES_8(OTHER), OTHER, SPACE, LINE, SPACE, SPACE, LINE, OTHER, OTHER, TIMES_8(OTHER), TIMES_8(OTHER),
    SPACE, SIGN, SIGN, SIGN, SIGN, SIGN, SIGN, SIGN, TIMES_8(SIGN), TIMES_8(CYG_NUMBER), CYG_NUMBER, CYG_NUMBER, SIGN, SIGN, SIGN, SIGN, SIGN, SIGN,
    SIGN, CAPITAL, CAPITAL, CAPITAL, CAPITAL, CAPITAL, CAPITAL, CAPITAL, TIMES_8(CAPITAL), TIMES_8(CAPITAL), CAPITAL, CAPITAL, CAPITAL, SIGN, SIGN, SIGN, SIGN, SIGN,
    SIGN, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, TIMES_8(SMALL), TIMES_8(SMALL), SMALL, SMALL, SMALL, SIGN, SIGN, SIGN, SIGN, OTHER
};

static int reserve(cyg_classes *c, size_t length)
{
    if (c->memory && length <= c->capacity) return 0;
    size_t capacity = (length + length / 4 + 1024) & ~(size_t)63;
    size_t mask_size = capacity / 8 + CYG_MASK_SLACK;
    uint8_t *memory = malloc(capacity + 64 + CYG_MASK_SLACK + CYG_MASKS * mask_size);
    if (!memory) return -1;
    free(c->memory);
    c->memory = memory;
    c->capacity = capacity;
    c->classes = memory;
    for (int k = 0; k < CYG_MASKS; k++) c->mask[k] = memory + capacity + 64 + CYG_MASK_SLACK + (size_t)k * mask_size;
    return 0;
}

static uint8_t class_of(uint32_t code_point)
{
    unsigned k = cyg_unicode_class(code_point);
    return k >> 7 ? SPACE : by_category[k & 31];
}

/* Fills class bytes from i, where a character begins, to the first character that begins at end or later; returns where that is. */
static size_t classify_bytes(uint8_t *classes, const uint8_t *text, size_t i, size_t end)
{
    while (i < end) {
        if (text[i] < 0x80) {
            classes[i] = ascii[text[i]];
            i++;
            continue;
        }
        size_t size = cyg_utf8_size(text[i]);
        memset(classes + i, class_of(cyg_utf8_decode(text + i)), size);
        i += size;
    }
    return i;
}

#if defined(__SSE2__)
/* Writes a mask of 16 bytes; returns the lanes as a class bit. */
static inline __m128i put_mask(cyg_classes *c, size_t i, int k, __m128i lanes)
{
    uint16_t bits = (uint16_t)_mm_movemask_epi8(lanes);
    memcpy(c->mask[k] + i / 8, &bits, 2);
    return k < CYG_CLASS_BITS ? _mm_and_si128(lanes, _mm_set1_epi8((char)(1 << k))) : lanes;
}
#endif

/* The masks of 16 bytes of text, whose class bytes are there. */
static void transpose(cyg_classes *c, size_t i, const uint8_t *text)
{
#if defined(__SSE2__)
    __m128i bytes = _mm_loadu_si128((const __m128i *)text), v = _mm_loadu_si128((const __m128i *)(c->classes + i));
    put_mask(c, i, CYG_BLANK, _mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')));
    put_mask(c, i, CYG_QUOTE, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\'')));
    put_mask(c, i, CYG_WIDE, bytes);
    for (int k = CYG_CLASS_BITS - 1; k >= 0; k--) {
        put_mask(c, i, k, v);
        v = _mm_add_epi8(v, v);
    }
#else
    for (size_t half = 0; half < 16; half += 8) {
        uint8_t blank = 0, quote = 0, wide = 0;
        for (size_t k = 0; k < 8; k++) {
            blank |= (uint8_t)((text[half + k] == ' ') << k);
            quote |= (uint8_t)((text[half + k] == '\'') << k);
            wide |= (uint8_t)((text[half + k] >> 7) << k);
        }
        c->mask[CYG_BLANK][(i + half) / 8] = blank;
        c->mask[CYG_QUOTE][(i + half) / 8] = quote;
        c->mask[CYG_WIDE][(i + half) / 8] = wide;
        uint64_t v = cyg_load64(c->classes + i + half);
        for (int k = 0; k < CYG_CLASS_BITS; k++)
            c->mask[k][(i + half) / 8] = (uint8_t)(((v >> k & UINT64_C(0x0101010101010101)) * UINT64_C(0x0102040810204080)) >> 56);
    }
#endif
}

#if defined(__SSE2__)
static inline __m128i within(__m128i v, char first, char count)
{
    return _mm_cmplt_epi8(_mm_add_epi8(v, _mm_set1_epi8((char)(-128 - first))), _mm_set1_epi8((char)(-128 + count)));
}

/* Class bytes and masks of 16 ASCII characters, by comparison. */
static inline void classify_ascii(cyg_classes *c, size_t i, __m128i v)
{
    __m128i letter = within(_mm_or_si128(v, _mm_set1_epi8(0x20)), 'a', 26), number = within(v, '0', 10);
    __m128i small = _mm_and_si128(letter, within(v, 'a', 26)), capital = _mm_andnot_si128(small, letter);
    __m128i blank = _mm_cmpeq_epi8(v, _mm_set1_epi8(' ')), space = _mm_or_si128(blank, within(v, 9, 5));
    __m128i line = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\n')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\r')));
    __m128i known = _mm_or_si128(_mm_or_si128(letter, number), space), other = _mm_andnot_si128(known, _mm_set1_epi8(-1));
    __m128i sign = _mm_and_si128(other, within(v, 33, 94));
    put_mask(c, i, CYG_BLANK, blank);
    put_mask(c, i, CYG_QUOTE, _mm_cmpeq_epi8(v, _mm_set1_epi8('\'')));
    put_mask(c, i, CYG_WIDE, _mm_setzero_si128());
    __m128i classes = _mm_or_si128(put_mask(c, i, 0, letter), put_mask(c, i, 1, number));
    classes = _mm_or_si128(classes, _mm_or_si128(put_mask(c, i, 2, other), put_mask(c, i, 3, space)));
    classes = _mm_or_si128(classes, _mm_or_si128(put_mask(c, i, 4, line), put_mask(c, i, 5, capital)));
    classes = _mm_or_si128(classes, _mm_or_si128(put_mask(c, i, 6, small), put_mask(c, i, 7, sign)));
    _mm_storeu_si128((__m128i *)(c->classes + i), classes);
}
#endif

/* Returns whether the 16 bytes were all ASCII, and done. */
static inline int try_ascii(cyg_classes *c, size_t i, const uint8_t *text)
{
#if defined(__SSE2__)
    __m128i v = _mm_loadu_si128((const __m128i *)text);
    if (_mm_movemask_epi8(v)) return 0;
    classify_ascii(c, i, v);
    return 1;
#else
    return 0;
#endif
}

int cyg_classify(cyg_classes *c, const uint8_t *text, size_t length)
{
    if (reserve(c, length)) return -1;
    size_t padded = (length + 15) & ~(size_t)15, whole = length & ~(size_t)15, done = 0;
    for (size_t i = 0; i < whole; i += 16) {
        if (try_ascii(c, i, text + i)) continue;
        done = classify_bytes(c->classes, text, done > i ? done : i, i + 16);
        transpose(c, i, text + i);
    }
    classify_bytes(c->classes, text, done > whole ? done : whole, length);
    memset(c->classes + length, 0, 16 + CYG_MASK_SLACK);
    if (whole < padded) {
        uint8_t tail[16] = {0};
        memcpy(tail, text + whole, length - whole);
        transpose(c, whole, tail);
    }
    for (int k = 0; k < CYG_MASKS; k++) memset(c->mask[k] + padded / 8, 0, CYG_MASK_SLACK);
    return 0;
}

void cyg_classes_free(cyg_classes *c)
{
    free(c->memory);
    memset(c, 0, sizeof *c);
}
