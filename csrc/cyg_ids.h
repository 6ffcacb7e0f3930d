/* A growing array of token ids: what every tokenizer lane appends to. */
#ifndef CYG_IDS_H
#define CYG_IDS_H

#include <stdint.h>
#include <stdlib.h>

typedef struct {
    int32_t *data;
    size_t size, capacity;
} cyg_ids;

/* Makes room for `extra` more ids. Returns 0, or -1 when memory is out (the ids so far stay). */
static inline int cyg_ids_reserve(cyg_ids *ids, size_t extra)
{
    size_t wanted = ids->size + extra;
    if (wanted <= ids->capacity) return 0;
    size_t capacity = ids->capacity + ids->capacity / 2 + 64;
    if (capacity < wanted) capacity = wanted;
    int32_t *data = (int32_t *)realloc(ids->data, capacity * sizeof *data);
    if (!data) return -1;
    ids->data = data;
    ids->capacity = capacity;
    return 0;
}

static inline int cyg_ids_push(cyg_ids *ids, int32_t id)
{
    if (cyg_ids_reserve(ids, 1)) return -1;
    ids->data[ids->size++] = id;
    return 0;
}

#endif
