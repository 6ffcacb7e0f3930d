/* Reading and writing single code points of valid UTF-8, and telling whether it is valid. */
#ifndef CYG_UTF8_H
#define CYG_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Reads the code point that begins at `at`, which must be valid and whole; returns its length. */
static inline size_t cyg_utf8_read(const uint8_t *at, uint32_t *code)
{
    if (at[0] < 0x80) {
        *code = at[0];
        return 1;
    }
    if (at[0] < 0xE0) {
        *code = (uint32_t)(at[0] & 0x1F) << 6 | (at[1] & 0x3F);
        return 2;
    }
    if (at[0] < 0xF0) {
        *code = (uint32_t)(at[0] & 0x0F) << 12 | (uint32_t)(at[1] & 0x3F) << 6 | (at[2] & 0x3F);
        return 3;
    }
    *code = (uint32_t)(at[0] & 0x07) << 18 | (uint32_t)(at[1] & 0x3F) << 12 | (uint32_t)(at[2] & 0x3F) << 6 | (at[3] & 0x3F);
    return 4;
}

/* Length of the code point whose first byte this is; 1 for a byte that begins none. */
static inline size_t cyg_utf8_length(uint8_t first) { return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }

/* Writes a code point in at most 4 bytes; returns its length. */
static inline size_t cyg_utf8_write(uint8_t *at, uint32_t code)
{
    if (code < 0x80) {
        at[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        at[0] = (uint8_t)(0xC0 | code >> 6);
        at[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        at[0] = (uint8_t)(0xE0 | code >> 12);
        at[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        at[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    at[0] = (uint8_t)(0xF0 | code >> 18);
    at[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    at[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    at[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}

/* Whether bytes are valid UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
static inline int cyg_utf8_is_valid(const uint8_t *at, size_t size)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *end = at + size;
    while (at < end) {
        if (*at < 0x80) {
            at++;
            continue;
        }
        size_t length = cyg_utf8_length(*at);
        uint32_t code = 0;
        if (length < 2 || *at > 0xF4 || (size_t)(end - at) < length)
            return 0;
        for (size_t i = 1; i < length; i++)
            if ((at[i] & 0xC0) != 0x80)
                return 0;
        cyg_utf8_read(at, &code);
        if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
            return 0;
        at += length;
    }
    return 1;
}

#endif
