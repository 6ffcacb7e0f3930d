/* Character classes of a text as bit masks, one bit a byte: what the split rules scan instead of the text.
 *
 * A run of letters is then one count of trailing ones, whatever the script, and no loop over characters. */
#ifndef CYG_SCAN_CLASSES_H
#define CYG_SCAN_CLASSES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The class byte of a character: a set of these bits. OTHER is all that is neither letter, number nor space (marks too). */
enum {
    CYG_LETTER = 1,  /* L* */
    CYG_NUMBER = 2,  /* N* */
    CYG_OTHER = 4,
    CYG_SPACE = 8,   /* White_Space */
    CYG_NEWLINE = 16, /* \r \n */
    CYG_UPPER = 32,  /* Lu Lt Lm Lo M*: may stand in the capital part of a word */
    CYG_LOWER = 64,  /* Ll Lm Lo M*: may stand in its small part */
    CYG_SIGN = 128   /* P* S* */
};
/* Masks of bytes: U+0020, the apostrophe, and those of characters outside ASCII. */
enum { CYG_CLASS_BITS = 8, CYG_BLANK = 8, CYG_QUOTE = 9, CYG_WIDE = 10, CYG_MASKS = 11, CYG_MASK_SLACK = 16 };

typedef struct {
    uint8_t *classes;              /* class byte of every byte of the text (of the character it belongs to), then zeros */
    uint8_t *mask[CYG_MASKS]; /* bit i of mask[k] is bit k of classes[i], or what is said above of byte i; zeros after the end */
    size_t capacity;               /* bytes of text there is room for */
    void *memory;
} cyg_classes;

/* Classifies `length` bytes of valid UTF-8. Returns 0, or -1 when memory is out. */
int cyg_classify(cyg_classes *c, const uint8_t *text, size_t length);
void cyg_classes_free(cyg_classes *c);

static inline uint64_t cyg_load64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static inline unsigned cyg_trailing_zeros(uint64_t v)
{
#if defined(__GNUC__) || defined(__clang__)
    return (unsigned)__builtin_ctzll(v);
#else
    unsigned n = 0;
    while (!(v & 1)) v >>= 1, n++;
    return n;
#endif
}

static inline unsigned cyg_highest_bit(uint64_t v)
{
#if defined(__GNUC__) || defined(__clang__)
    return 63 - (unsigned)__builtin_clzll(v);
#else
    unsigned n = 0;
    while (v >>= 1) n++;
    return n;
#endif
}

/* Bytes in the character that begins with this byte. */
static inline size_t cyg_utf8_size(uint8_t lead) { return lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

/* The code point at p, in valid UTF-8. */
static inline uint32_t cyg_utf8_decode(const uint8_t *p)
{
    if (p[0] < 0x80) return p[0];
    if (p[0] < 0xE0) return (uint32_t)(p[0] & 31) << 6 | (p[1] & 63);
    if (p[0] < 0xF0) return (uint32_t)(p[0] & 15) << 12 | (uint32_t)(p[1] & 63) << 6 | (p[2] & 63);
    return (uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 63) << 12 | (uint32_t)(p[2] & 63) << 6 | (p[3] & 63);
}

#endif
