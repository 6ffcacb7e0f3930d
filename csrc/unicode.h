/* Unicode properties of code points, from the two-stage tables of tools/make_unicode_tables.py.
 * Every lookup takes any 32-bit number: beyond U+10FFFF it answers as for an unassigned code point. */
#ifndef CYG_UNICODE_H
#define CYG_UNICODE_H

#include <stddef.h>
#include <stdint.h>

/* General categories, in the order of the table's low five bits. */
enum {
    CYG_CN, CYG_LU, CYG_LL, CYG_LT, CYG_LM, CYG_LO, CYG_MN, CYG_MC, CYG_ME, CYG_ND, CYG_NL, CYG_NO, CYG_PC, CYG_PD, CYG_PS,
    CYG_PE, CYG_PI, CYG_PF, CYG_PO, CYG_SM, CYG_SC, CYG_SK, CYG_SO, CYG_ZS, CYG_ZL, CYG_ZP, CYG_CC, CYG_CF, CYG_CS, CYG_CO
};

/* Sets of categories: test with (CYG_IS_x >> category) & 1. */
#define CYG_BIT(category) (UINT32_C(1) << (category))
#define CYG_IS_LETTER (CYG_BIT(CYG_LU) | CYG_BIT(CYG_LL) | CYG_BIT(CYG_LT) | CYG_BIT(CYG_LM) | CYG_BIT(CYG_LO))
#define CYG_IS_MARK (CYG_BIT(CYG_MN) | CYG_BIT(CYG_MC) | CYG_BIT(CYG_ME))
#define CYG_IS_NUMBER (CYG_BIT(CYG_ND) | CYG_BIT(CYG_NL) | CYG_BIT(CYG_NO))
#define CYG_IS_PUNCTUATION \
    (CYG_BIT(CYG_PC) | CYG_BIT(CYG_PD) | CYG_BIT(CYG_PS) | CYG_BIT(CYG_PE) | CYG_BIT(CYG_PI) | CYG_BIT(CYG_PF) | CYG_BIT(CYG_PO))
#define CYG_IS_SYMBOL (CYG_BIT(CYG_SM) | CYG_BIT(CYG_SC) | CYG_BIT(CYG_SK) | CYG_BIT(CYG_SO))
#define CYG_IS_SEPARATOR (CYG_BIT(CYG_ZS) | CYG_BIT(CYG_ZL) | CYG_BIT(CYG_ZP))
#define CYG_IS_OTHER (CYG_BIT(CYG_CN) | CYG_BIT(CYG_CC) | CYG_BIT(CYG_CF) | CYG_BIT(CYG_CS) | CYG_BIT(CYG_CO))

extern const uint8_t cyg_class_index[], cyg_class_data[];
extern const uint8_t cyg_grapheme_index[], cyg_grapheme_data[];
extern const uint8_t cyg_script_index[], cyg_script_data[];
extern const uint8_t cyg_combining_index[], cyg_combining_data[];
extern const uint8_t cyg_lower_index[], cyg_lower_data[];
extern const int32_t cyg_lower_deltas[];
extern const uint8_t cyg_canonical_index[], cyg_compatibility_index[];
extern const uint16_t cyg_canonical_data[], cyg_compatibility_data[];
extern const uint32_t cyg_decomposition_pool[];
extern const uint32_t cyg_composition_count, cyg_compositions[];
extern const char *const cyg_script_names[]; /* by script number, ended by 0 */

/* The class byte: category in bits 0-4 (Unicode 16.0), age in bits 5-6, White_Space in bit 7.
 * Age 0: assigned in 8.0; 1: new in 9.0; 2: later; 3: unassigned in 16.0, a number since 17.0. */
static inline unsigned cyg_unicode_class(uint32_t c)
{
    return c < 0x110000 ? cyg_class_data[(unsigned)cyg_class_index[c >> 8] << 8 | (c & 255)] : 0;
}

static inline unsigned cyg_unicode_category(uint32_t c) { return cyg_unicode_class(c) & 31; }

static inline int cyg_unicode_is(uint32_t c, uint32_t categories) { return categories >> cyg_unicode_category(c) & 1; }

/* Categories as Unicode 8.0 had them: what the punctuation, control and accent rules of BERT in tokenizer.json go by. */
static inline int cyg_unicode_8_is(uint32_t c, uint32_t categories)
{
    unsigned k = cyg_unicode_class(c);
    return (k >> 5 & 3) == 0 && (categories >> (k & 31) & 1);
}

static inline int cyg_is_space(uint32_t c) { return (int)(cyg_unicode_class(c) >> 7); }

/* A number of any kind, Unicode 17.0. */
static inline int cyg_is_numeric(uint32_t c)
{
    unsigned k = cyg_unicode_class(c);
    return (CYG_IS_NUMBER >> (k & 31) & 1) || (k >> 5 & 3) == 3;
}

/* Punctuation as BERT splits at: ASCII symbols count, the rest is Unicode 8.0's, where two code points were of another category. */
static inline int cyg_is_bert_punctuation(uint32_t c)
{
    if (c < 128)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    return cyg_unicode_8_is(c, CYG_IS_PUNCTUATION) || c == 0x166D || c == 0x111C9;
}

/* Nonspacing marks that BERT strips after NFD: Unicode 8.0's, as they were classified then. */
static inline int cyg_is_bert_accent(uint32_t c)
{
    if (c < 0x300)
        return 0;
    if (c == 0x1734 || c == 0x1171E)
        return 1;
    return cyg_unicode_8_is(c, CYG_BIT(CYG_MN)) && c != 0x1885 && c != 0x1886 && c != 0xA9BD && c != 0x111C9;
}

/* Marks of any kind in Unicode 9.0. */
static inline int cyg_is_mark_9(uint32_t c)
{
    unsigned k = cyg_unicode_class(c);
    return ((k >> 5 & 3) < 2 && (CYG_IS_MARK >> (k & 31) & 1) && c != 0x111C9) || c == 0x1CF2 || c == 0x1CF3;
}

/* Control characters that BERT drops: U+0000, U+FFFD and Unicode 8.0's Cc, Cf and Co, except tab, line feed and carriage return. */
static inline int cyg_is_bert_control(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r')
        return 0;
    return c == 0xFFFD || cyg_unicode_8_is(c, CYG_BIT(CYG_CC) | CYG_BIT(CYG_CF) | CYG_BIT(CYG_CO));
}

/* Ideographs that BERT puts spaces around: the blocks as the reference tokenizer lists them, its odd start of Extension E included. */
static inline int cyg_is_bert_ideograph(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B81F) ||
           (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/* Whether the character came with Unicode 16.0. */
int cyg_is_new_in_16(uint32_t c);

/* Script number; its name is cyg_script_names[number], 0 is Unknown. */
static inline unsigned cyg_unicode_script(uint32_t c)
{
    return c < 0x110000 ? cyg_script_data[(unsigned)cyg_script_index[c >> 8] << 8 | (c & 255)] : 0;
}

/* Canonical combining class, Unicode 9.0. */
static inline unsigned cyg_combining_class(uint32_t c)
{
    return c < 0x110000 ? cyg_combining_data[(unsigned)cyg_combining_index[c >> 8] << 8 | (c & 255)] : 0;
}

/* Simple lower-case mapping, Unicode 17.0; the full mapping differs for U+0130 alone, which becomes "i" and U+0307. */
static inline uint32_t cyg_lower(uint32_t c)
{
    return c < 0x110000 ? c + (uint32_t)cyg_lower_deltas[cyg_lower_data[(unsigned)cyg_lower_index[c >> 8] << 8 | (c & 255)]] : c;
}

#define CYG_MAX_DECOMPOSITION 18

/* Full decomposition of one code point, canonical or compatibility (Unicode 9.0); returns the length, at most CYG_MAX_DECOMPOSITION. */
int cyg_decompose(uint32_t c, int compatibility, uint32_t *out);

/* Primary composite of two code points, or 0. */
uint32_t cyg_compose(uint32_t first, uint32_t second);

/* Extended grapheme clusters (UAX #29): feed the code points of a text one by one to a state that starts as zeros. */
typedef struct {
    uint8_t started, previous, regional_odd, pictographic, conjunct;
} cyg_grapheme_state;

/* Whether a cluster begins at c. */
int cyg_grapheme_begins(cyg_grapheme_state *state, uint32_t c);

#endif
