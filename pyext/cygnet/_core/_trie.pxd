from libc.stdint cimport int32_t


cdef extern from "trie.h" nogil:
    ctypedef struct cyg_trie_unit:
        int32_t base
        int32_t check
        int32_t value
    ctypedef struct cyg_trie:
        cyg_trie_unit *units
        size_t size
        size_t keys
    ctypedef struct cyg_trie_key:
        const char *bytes
        size_t size
        int32_t value
    int cyg_trie_build(cyg_trie *trie, cyg_trie_key *keys, size_t count)
    void cyg_trie_free(cyg_trie *trie)
    int32_t cyg_trie_step(const cyg_trie_unit *units, int32_t node, unsigned char byte)
    int32_t cyg_trie_walk(const cyg_trie *trie, int32_t node, const char *bytes, size_t size)
    int32_t cyg_trie_find(const cyg_trie *trie, const char *bytes, size_t size)


cdef class Trie:
    cdef cyg_trie trie
