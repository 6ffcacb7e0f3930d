/* The merges of a GGUF file straight from its bytes. */
#ifndef CYG_BPE_GGUF_H
#define CYG_BPE_GGUF_H

#include "bpe.h"

/* Reads `count` strings "left right", each behind its length in eight bytes, and writes left, right and merged id of each (3 numbers). `vocab` holds all
 * tokens by their UTF-8 bytes. Returns `count`, or -1 - index of the first that is malformed or unknown. */
int64_t cyg_gguf_read_merges(const cyg_bpe *vocab, const uint8_t *strings, size_t count, int32_t *out);

#endif
