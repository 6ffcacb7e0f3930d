/* A growing UTF-8 text, and where wanted the range of the source text behind each of its bytes. */
#ifndef CYG_TEXT_BUFFER_H
#define CYG_TEXT_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint8_t *bytes;
    size_t *origins; /* start and end for each byte, if aligned */
    size_t size, room;
    size_t source_end; /* where the source of the whole text ends, if aligned */
    int aligned;
} cyg_text;

static inline int cyg_text_grow(cyg_text *text, size_t extra)
{
    size_t room = text->room + text->room / 2 + extra + 64;
    uint8_t *bytes = (uint8_t *)realloc(text->bytes, room);
    if (!bytes)
        return -1;
    text->bytes = bytes;
    if (text->aligned) {
        size_t *origins = (size_t *)realloc(text->origins, 2 * room * sizeof *origins);
        if (!origins)
            return -1;
        text->origins = origins;
    }
    text->room = room;
    return 0;
}

/* Makes sure that so many bytes can be read after the last one. */
static inline int cyg_text_slack(cyg_text *text, size_t extra) { return text->room - text->size < extra ? cyg_text_grow(text, extra) : 0; }

/* Appends bytes that stand for source bytes start to end. Returns 0, or -1 when memory is out. */
static inline int cyg_text_put(cyg_text *text, const uint8_t *bytes, size_t size, size_t start, size_t end)
{
    if (size > text->room - text->size && cyg_text_grow(text, size))
        return -1;
    memcpy(text->bytes + text->size, bytes, size);
    if (text->aligned) {
        for (size_t i = text->size; i < text->size + size; i++) {
            text->origins[2 * i] = start;
            text->origins[2 * i + 1] = end;
        }
    }
    text->size += size;
    return 0;
}

/* Appends bytes each of which stands for itself, the first for the source byte at start. */
static inline int cyg_text_copy(cyg_text *text, const uint8_t *bytes, size_t size, size_t start)
{
    size_t first = text->size;
    if (cyg_text_put(text, bytes, size, start, start))
        return -1;
    if (text->aligned) {
        for (size_t i = 0; i < size; i++) {
            text->origins[2 * (first + i)] = start + i;
            text->origins[2 * (first + i) + 1] = start + i + 1;
        }
    }
    return 0;
}

static inline void cyg_text_free(cyg_text *text)
{
    free(text->bytes);
    free(text->origins);
    memset(text, 0, sizeof *text);
}

#endif
