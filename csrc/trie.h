/* A double-array trie from byte strings to numbers (Aoki 1989): one memory access a byte.
 * Keys may hold any bytes, NUL among them. */
#ifndef CYG_TRIE_H
#define CYG_TRIE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int32_t base;  /* the child by byte b, if there is one, is unit base + b */
    int32_t check; /* the parent; no node has a free unit as its child */
    int32_t value; /* of the key that ends here, or -1 */
} cyg_trie_unit;

typedef struct {
    cyg_trie_unit *units; /* the root is unit 0 */
    size_t size;
    size_t keys; /* different ones */
} cyg_trie;

typedef struct {
    const char *bytes;
    size_t size;
    int32_t value; /* not negative */
} cyg_trie_key;

/* Fills an empty trie; of equal keys the one with the largest value counts. The keys are put in another order. Returns 0, or -1 where memory or the 31-bit
 * numbers of units run out; the trie then stays empty. */
int cyg_trie_build(cyg_trie *trie, cyg_trie_key *keys, size_t count);

void cyg_trie_free(cyg_trie *trie);

/* The child of a node by a byte, or -1. The node is one that a lookup returned, or 0 for the root. */
static inline int32_t cyg_trie_step(const cyg_trie_unit *units, int32_t node, unsigned char byte)
{
    int32_t next = units[node].base + byte;
    return units[next].check == node ? next : -1;
}

/* The node that the bytes lead to from a node, or -1. */
int32_t cyg_trie_walk(const cyg_trie *trie, int32_t node, const char *bytes, size_t size);

/* The value of exactly this key, or -1. */
int32_t cyg_trie_find(const cyg_trie *trie, const char *bytes, size_t size);

#endif
