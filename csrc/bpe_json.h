/* The "merges" of a tokenizer.json straight from its bytes: millions of small strings that never become objects. */
#ifndef CYG_BPE_JSON_H
#define CYG_BPE_JSON_H

#include "bpe.h"

/* Reads a list of "left right" or ["left", "right"] and writes left, right and merged id of each (3 numbers; `out` has room for `capacity` merges).
 * `vocab` holds all tokens by their UTF-8 bytes. Returns how many merges there are, or -1 - index of the first that is malformed or unknown. */
int64_t cyg_json_read_merges(const cyg_bpe *vocab, const uint8_t *json, size_t length, size_t prefix, int32_t *out, size_t capacity);

#endif
