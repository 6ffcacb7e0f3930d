/* A vocabulary in two pieces of memory instead of objects: the bytes of all tokens, and where those of each lie. */
#ifndef CYG_VOCABULARY_H
#define CYG_VOCABULARY_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t start;
    uint32_t size;
    int32_t id;
} cyg_spelling;

typedef struct {
    uint8_t *bytes;
    size_t used, room;
    cyg_spelling *rows;
    size_t count, capacity;
} cyg_vocabulary;

/* Returns 0, or -1 when memory is out. */
int cyg_vocabulary_add(cyg_vocabulary *v, const uint8_t *bytes, size_t size, int32_t id);

/* Fills an empty vocabulary from JSON text: {"token": id, ...}. Returns 1, 0 where anything is wrong with the text, or -1 when memory is out. */
int cyg_vocabulary_read_ids(cyg_vocabulary *v, const uint8_t *json, size_t length);

/* The same for [["token", score], ...]; ids count the tokens, and *scores becomes an array of as many, to be freed by the caller. */
int cyg_vocabulary_read_scores(cyg_vocabulary *v, const uint8_t *json, size_t length, double **scores);

/* Puts the rows in the order of their ids, for cyg_vocabulary_find. Returns whether all ids differ. */
int cyg_vocabulary_sort(cyg_vocabulary *v);

/* The row of an id, or NULL. */
const cyg_spelling *cyg_vocabulary_find(const cyg_vocabulary *v, int32_t id);

void cyg_vocabulary_free(cyg_vocabulary *v);

#endif
