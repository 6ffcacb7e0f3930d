from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t

from cygnet._core._trie cimport Trie


cdef extern from "vocabulary.h" nogil:
    ctypedef struct cyg_spelling:
        size_t start
        uint32_t size
        int32_t id
    ctypedef struct cyg_vocabulary:
        uint8_t *bytes
        cyg_spelling *rows
        size_t count
    int cyg_vocabulary_add(cyg_vocabulary *v, const uint8_t *bytes, size_t size, int32_t id)
    int cyg_vocabulary_read_ids(cyg_vocabulary *v, const uint8_t *json, size_t length)
    int cyg_vocabulary_read_scores(cyg_vocabulary *v, const uint8_t *json, size_t length, double **scores)
    bint cyg_vocabulary_sort(cyg_vocabulary *v)
    const cyg_spelling *cyg_vocabulary_find(const cyg_vocabulary *v, int32_t id)
    void cyg_vocabulary_free(cyg_vocabulary *v)


cdef extern from "json_scan.h" nogil:
    ctypedef struct cyg_json:
        const uint8_t *at
        const uint8_t *end
    ctypedef struct cyg_json_span:
        size_t begin
        size_t end
    void cyg_json_find_in_model(const uint8_t *json, size_t length, const char *const *keys, size_t count, cyg_json_span *spans)
    bint cyg_json_read_score(cyg_json *c, double *out)


cdef class Vocabulary:
    cdef cyg_vocabulary c
    cdef readonly Trie trie
    cdef int add(self, str token, int32_t id) except -1
    cdef int index(self) except -1
