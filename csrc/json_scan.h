/* A scanner for the large parts of a JSON document (RFC 8259), which need not become objects. */
#ifndef CYG_JSON_SCAN_H
#define CYG_JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const uint8_t *at, *end;
} cyg_json;

typedef struct {
    size_t begin, end;
} cyg_json_span;

/* Finds the values of `count` keys in the object under "model": the span of each, empty where it is not found. The document need not be valid. */
void cyg_json_find_in_model(const uint8_t *json, size_t length, const char *const *keys, size_t count, cyg_json_span *spans);

/* Past white space and then this byte; 0 where another one stands there. */
int cyg_json_take(cyg_json *c, uint8_t wanted);

/* Past white space and then a string, unescaped into `out`. 0 where there is none, or it is malformed or longer than `room`. */
int cyg_json_read_string(cyg_json *c, uint8_t *out, size_t room, size_t *size);

/* Past white space and then a whole number from 0 to 2**31 - 1. */
int cyg_json_read_id(cyg_json *c, int32_t *out);

/* Past white space and then a finite number of at most 19 digits, as tokenizer.json's own library reads it: the digits as an integer, rounded, by a
 * power of ten, rounded again. Pieces of equal score along two ways through a text are common, and the last bit decides which way is taken. */
int cyg_json_read_score(cyg_json *c, double *out);

#endif
