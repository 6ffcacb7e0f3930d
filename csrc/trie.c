/* Builds double-array tries level by level from sorted keys. */
#include "trie.h"

#include <stdlib.h>
#include <string.h>

enum { FREE = -1, ROOT = -2, LABELS = 256 };

/* A node whose children are still to be placed: the keys from low to high share `depth` bytes. */
typedef struct {
    int32_t node;
    size_t low, high, depth;
} range;

typedef struct {
    cyg_trie *trie;
    const cyg_trie_key *keys;
    range *queue;
    size_t head, tail, capacity;
    size_t first_gap; /* below it the array is nearly full */
} builder;

static int compare(const void *a, const void *b)
{
    const cyg_trie_key *x = a, *y = b;
    size_t n = x->size < y->size ? x->size : y->size;
    int order = n ? memcmp(x->bytes, y->bytes, n) : 0;
    if (order)
        return order;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* Makes sure that units up to last + LABELS exist: a lookup from any node stays inside. */
static int reserve(cyg_trie *trie, size_t last)
{
    size_t wanted = last + LABELS + 1, size = trie->size ? trie->size : 1024;
    if (wanted <= trie->size)
        return 0;
    while (size < wanted)
        size += size / 2;
    if (size > INT32_MAX)
        return -1;
    cyg_trie_unit *units = realloc(trie->units, size * sizeof *units);
    if (!units)
        return -1;
    for (size_t i = trie->size; i < size; i++)
        units[i] = (cyg_trie_unit){0, FREE, -1};
    trie->units = units;
    trie->size = size;
    return 0;
}

static int push(builder *b, range r)
{
    if (b->tail == b->capacity) {
        size_t capacity = b->capacity ? 2 * b->capacity : 256;
        range *queue = realloc(b->queue, capacity * sizeof *queue);
        if (!queue)
            return -1;
        b->queue = queue;
        b->capacity = capacity;
    }
    b->queue[b->tail++] = r;
    return 0;
}

/* A base that puts every label on a free unit, or 0 where memory ran out. */
static size_t find_base(builder *b, const unsigned char *labels, int count)
{
    cyg_trie *trie = b->trie;
    size_t start = b->first_gap > labels[0] ? b->first_gap : (size_t)labels[0] + 1, taken = 0;
    int first = 1;
    for (size_t at = start;; at++) {
        if (reserve(trie, at - labels[0] + LABELS))
            return 0;
        if (trie->units[at].check != FREE) {
            taken++;
            continue;
        }
        if (first)
            b->first_gap = at;
        first = 0;
        size_t base = at - labels[0];
        int i = 1;
        while (i < count && trie->units[base + labels[i]].check == FREE)
            i++;
        if (i < count)
            continue;
        if (taken * 20 >= (at - b->first_gap + 1) * 19)
            b->first_gap = at;
        return base;
    }
}

static int place_children(builder *b, range r)
{
    unsigned char labels[LABELS];
    size_t starts[LABELS + 1];
    int count = 0;
    cyg_trie *trie = b->trie;
    for (; r.low < r.high && b->keys[r.low].size == r.depth; r.low++)
        trie->units[r.node].value = b->keys[r.low].value;
    for (size_t i = r.low; i < r.high; i++) {
        unsigned char label = (unsigned char)b->keys[i].bytes[r.depth];
        if (!count || labels[count - 1] != label) {
            labels[count] = label;
            starts[count++] = i;
        }
    }
    if (!count)
        return 0;
    starts[count] = r.high;
    size_t base = find_base(b, labels, count);
    if (!base)
        return -1;
    trie->units[r.node].base = (int32_t)base;
    for (int i = 0; i < count; i++) {
        int32_t child = (int32_t)(base + labels[i]);
        trie->units[child].check = r.node;
        if (push(b, (range){child, starts[i], starts[i + 1], r.depth + 1}))
            return -1;
    }
    return 0;
}

int cyg_trie_build(cyg_trie *trie, cyg_trie_key *keys, size_t count)
{
    builder b = {.trie = trie, .keys = keys, .first_gap = 1};
    *trie = (cyg_trie){0, 0};
    if (count)
        qsort(keys, count, sizeof *keys, compare);
    int failed = reserve(trie, LABELS);
    if (!failed) {
        trie->units[0].check = ROOT;
        failed = push(&b, (range){0, 0, count, 0});
    }
    while (!failed && b.head < b.tail)
        failed = place_children(&b, b.queue[b.head++]);
    free(b.queue);
    if (failed)
        cyg_trie_free(trie);
    return failed;
}

void cyg_trie_free(cyg_trie *trie)
{
    free(trie->units);
    *trie = (cyg_trie){0, 0};
}

int32_t cyg_trie_walk(const cyg_trie *trie, int32_t node, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size && node >= 0; i++)
        node = cyg_trie_step(trie->units, node, (unsigned char)bytes[i]);
    return node;
}

int32_t cyg_trie_find(const cyg_trie *trie, const char *bytes, size_t size)
{
    int32_t node = cyg_trie_walk(trie, 0, bytes, size);
    return node < 0 ? -1 : trie->units[node].value;
}
