/* Builds double-array tries level by level; keys are put in order one byte at a time on the way. */
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
    cyg_trie_key *keys, *spare; /* spare: room for as many */
    range *queue;
    size_t head, tail, capacity;
    uint64_t *free_units; /* a bit a unit */
    size_t first_gap;     /* below it the array is nearly full */
} builder;

/* Makes sure that units up to last + LABELS exist: a lookup from any node stays inside. */
static int reserve(builder *b, size_t last)
{
    cyg_trie *trie = b->trie;
    size_t wanted = last + LABELS + 1, size = trie->size ? trie->size : 1024;
    if (wanted <= trie->size)
        return 0;
    while (size < wanted)
        size += size / 128 * 64; /* half of it, in whole words */
    if (size > INT32_MAX)
        return -1;
    cyg_trie_unit *units = realloc(trie->units, size * sizeof *units);
    if (!units)
        return -1;
    trie->units = units;
    uint64_t *free_units = realloc(b->free_units, size / 8);
    if (!free_units)
        return -1;
    b->free_units = free_units;
    for (size_t i = trie->size; i < size; i++)
        units[i] = (cyg_trie_unit){0, FREE, -1};
    memset(free_units + trie->size / 64, 0xFF, (size - trie->size) / 8);
    trie->size = size;
    return 0;
}

static void take(builder *b, size_t unit, int32_t parent)
{
    b->trie->units[unit].check = parent;
    b->free_units[unit / 64] &= ~((uint64_t)1 << unit % 64);
}

/* Whether each of the 64 units from one on is free; the word after the last of them exists. */
static uint64_t free_from(const builder *b, size_t unit)
{
    const uint64_t *word = b->free_units + unit / 64;
    int shift = unit % 64;
    return shift ? word[0] >> shift | word[1] << (64 - shift) : word[0];
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

/* A base that puts every label on a free unit, or 0 where memory ran out: 64 bases at a time. */
static size_t find_base(builder *b, const unsigned char *labels, int count)
{
    size_t taken = 0, base = b->first_gap > labels[0] ? b->first_gap - labels[0] : 1, start = base;
    for (;; base += 64) {
        if (reserve(b, base + 64 + LABELS))
            return 0;
        uint64_t free = free_from(b, base + labels[0]), fits = free;
        for (int i = 1; i < count && fits; i++) fits &= free_from(b, base + labels[i]);
        if (fits)
            return base + (size_t)__builtin_ctzll(fits);
        taken += 64 - (size_t)__builtin_popcountll(free);
        if (taken * 20 >= (base + 64 - start) * 19)
            b->first_gap = base + 64 + labels[0];
    }
}

/* The bytes that keys of a range go on with, in ascending order, and where the keys of each begin. */
typedef struct {
    int count;
    unsigned char labels[LABELS];
    size_t starts[LABELS + 1];
} branches;

/* Leaves the keys that end at the range's node out of it; their largest value, or -1. */
static int32_t take_ended(builder *b, range *r)
{
    int32_t value = -1;
    for (size_t i = r->low; i < r->high; i++) {
        cyg_trie_key key = b->keys[i];
        if (key.size != r->depth)
            continue;
        value = key.value > value ? key.value : value;
        b->keys[i] = b->keys[r->low];
        b->keys[r->low++] = key;
    }
    b->trie->keys += value >= 0;
    return value;
}

/* Sorts the keys of a range by their next byte. */
static void branch(builder *b, range r, branches *out)
{
    size_t sizes[LABELS], next[LABELS];
    uint64_t seen[LABELS / 64] = {0};
    for (size_t i = r.low; i < r.high; i++) {
        unsigned char label = (unsigned char)b->keys[i].bytes[r.depth];
        uint64_t bit = (uint64_t)1 << label % 64;
        sizes[label] = seen[label / 64] & bit ? sizes[label] + 1 : 1;
        seen[label / 64] |= bit;
    }
    size_t at = r.low;
    out->count = 0;
    for (int word = 0; word < LABELS / 64; word++)
        for (uint64_t left = seen[word]; left; left &= left - 1) {
            int label = 64 * word + __builtin_ctzll(left);
            out->labels[out->count] = (unsigned char)label;
            out->starts[out->count++] = next[label] = at;
            at += sizes[label];
        }
    out->starts[out->count] = r.high;
    if (out->count < 2)
        return;
    for (size_t i = r.low; i < r.high; i++) b->spare[next[(unsigned char)b->keys[i].bytes[r.depth]]++] = b->keys[i];
    memcpy(b->keys + r.low, b->spare + r.low, (r.high - r.low) * sizeof *b->keys);
}

/* The unit of a node's child by one of the labels that its base was found for. */
static int32_t add_child(builder *b, int32_t node, size_t base, unsigned char label)
{
    int32_t child = (int32_t)(base + label);
    b->trie->units[node].base = (int32_t)base;
    take(b, (size_t)child, node);
    return child;
}

/* The nodes of a key that no other one shares from here on. */
static int place_tail(builder *b, int32_t node, const cyg_trie_key *key, size_t depth)
{
    for (; depth < key->size; depth++) {
        unsigned char label = (unsigned char)key->bytes[depth];
        size_t base = find_base(b, &label, 1);
        if (!base)
            return -1;
        node = add_child(b, node, base, label);
    }
    b->trie->units[node].value = key->value;
    b->trie->keys++;
    return 0;
}

static int place_children(builder *b, range r)
{
    branches next;
    b->trie->units[r.node].value = take_ended(b, &r);
    if (r.low == r.high)
        return 0;
    branch(b, r, &next);
    size_t base = find_base(b, next.labels, next.count);
    if (!base)
        return -1;
    for (int i = 0; i < next.count; i++) add_child(b, r.node, base, next.labels[i]);
    for (int i = 0; i < next.count; i++) {
        int32_t child = (int32_t)(base + next.labels[i]);
        size_t low = next.starts[i], high = next.starts[i + 1];
        int failed = high - low == 1 ? place_tail(b, child, b->keys + low, r.depth + 1) : push(b, (range){child, low, high, r.depth + 1});
        if (failed)
            return -1;
    }
    return 0;
}

int cyg_trie_build(cyg_trie *trie, cyg_trie_key *keys, size_t count)
{
    builder b = {.trie = trie, .keys = keys, .spare = malloc((count + 1) * sizeof *keys), .first_gap = 1};
    *trie = (cyg_trie){0};
    int failed = b.spare ? reserve(&b, LABELS) : -1;
    if (!failed) {
        take(&b, 0, ROOT);
        failed = push(&b, (range){0, 0, count, 0});
    }
    while (!failed && b.head < b.tail)
        failed = place_children(&b, b.queue[b.head++]);
    free(b.queue);
    free(b.spare);
    free(b.free_units);
    if (failed)
        cyg_trie_free(trie);
    return failed;
}

void cyg_trie_free(cyg_trie *trie)
{
    free(trie->units);
    *trie = (cyg_trie){0};
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
