/* See vocabulary.h. */
#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "json_scan.h"
#include "utf8.h"

/* Room for one more row. */
static int reserve_row(cyg_vocabulary *v)
{
    if (v->count < v->capacity)
        return 0;
    size_t capacity = 2 * v->capacity + 1024;
    cyg_spelling *rows = realloc(v->rows, capacity * sizeof *rows);
    if (!rows)
        return -1;
    v->rows = rows;
    v->capacity = capacity;
    return 0;
}

static int reserve_bytes(cyg_vocabulary *v, size_t room)
{
    uint8_t *bytes = realloc(v->bytes, room);
    if (!bytes)
        return -1;
    v->bytes = bytes;
    v->room = room;
    return 0;
}

int cyg_vocabulary_add(cyg_vocabulary *v, const uint8_t *bytes, size_t size, int32_t id)
{
    if (size > UINT32_MAX || reserve_row(v) || (v->room - v->used < size && reserve_bytes(v, 2 * v->room + size)))
        return -1;
    if (size)
        memcpy(v->bytes + v->used, bytes, size);
    v->rows[v->count++] = (cyg_spelling){v->used, (uint32_t)size, id};
    v->used += size;
    return 0;
}

/* Reads the next string into a row of its own. */
static int read_token(cyg_vocabulary *v, cyg_json *c)
{
    size_t size;
    if (reserve_row(v))
        return -1;
    if (!cyg_json_read_string(c, v->bytes + v->used, v->room - v->used, &size) || size > UINT32_MAX)
        return 0;
    v->rows[v->count] = (cyg_spelling){v->used, (uint32_t)size, (int32_t)v->count};
    v->used += size;
    return 1;
}

/* A vocabulary whose bytes have room for all that the text can spell, so that they never move. */
static int begin(cyg_vocabulary *v, const uint8_t *json, size_t length)
{
    return !cyg_utf8_is_valid(json, length) ? 0 : reserve_bytes(v, length + 8) ? -1 : 1;
}

/* Gives back what the text did not need. */
static int finish(cyg_vocabulary *v, const cyg_json *c)
{
    return c->at == c->end && v->count <= INT32_MAX && !reserve_bytes(v, v->used + 1);
}

int cyg_vocabulary_read_ids(cyg_vocabulary *v, const uint8_t *json, size_t length)
{
    cyg_json c = {json, json + length};
    int state = begin(v, json, length);
    if (state < 1)
        return state;
    if (!cyg_json_take(&c, '{'))
        return 0;
    for (; !cyg_json_take(&c, '}'); v->count++) {
        if (v->count && !cyg_json_take(&c, ','))
            return 0;
        state = read_token(v, &c);
        if (state < 1)
            return state;
        if (!cyg_json_take(&c, ':') || !cyg_json_read_id(&c, &v->rows[v->count].id))
            return 0;
    }
    return finish(v, &c);
}

int cyg_vocabulary_read_scores(cyg_vocabulary *v, const uint8_t *json, size_t length, double **scores)
{
    cyg_json c = {json, json + length};
    size_t capacity = 0;
    int state = begin(v, json, length);
    if (state < 1)
        return state;
    if (!cyg_json_take(&c, '['))
        return 0;
    for (; !cyg_json_take(&c, ']'); v->count++) {
        if (v->count && !cyg_json_take(&c, ','))
            return 0;
        if (!cyg_json_take(&c, '['))
            return 0;
        state = read_token(v, &c);
        if (state < 1)
            return state;
        if (v->capacity > capacity) {
            double *more = realloc(*scores, v->capacity * sizeof *more);
            if (!more)
                return -1;
            *scores = more;
            capacity = v->capacity;
        }
        if (!cyg_json_take(&c, ',') || !cyg_json_read_score(&c, *scores + v->count) || !cyg_json_take(&c, ']'))
            return 0;
    }
    return finish(v, &c);
}

static int by_id(const void *a, const void *b)
{
    const cyg_spelling *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

int cyg_vocabulary_sort(cyg_vocabulary *v)
{
    int in_order = 1, differ = 1;
    for (size_t i = 1; i < v->count && in_order; i++) in_order = v->rows[i - 1].id < v->rows[i].id;
    if (in_order)
        return 1;
    qsort(v->rows, v->count, sizeof *v->rows, by_id);
    for (size_t i = 1; i < v->count; i++) differ &= v->rows[i - 1].id != v->rows[i].id;
    return differ;
}

const cyg_spelling *cyg_vocabulary_find(const cyg_vocabulary *v, int32_t id)
{
    if (id >= 0 && (size_t)id < v->count && v->rows[id].id == id)
        return &v->rows[id];
    cyg_spelling key = {0, 0, id};
    return v->count ? bsearch(&key, v->rows, v->count, sizeof key, by_id) : NULL;
}

void cyg_vocabulary_free(cyg_vocabulary *v)
{
    free(v->bytes);
    free(v->rows);
    *v = (cyg_vocabulary){0};
}
