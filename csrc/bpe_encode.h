/* Byte pair encoding of text through the cache of pieces. */
#ifndef CYG_BPE_ENCODE_H
#define CYG_BPE_ENCODE_H

#include "bpe.h"
#include "bpe_cache.h"
#include "scan_split.h"

/* What one running call owns. */
typedef struct {
    cyg_bpe_cache cache;
    cyg_bpe_scratch scratch;
    cyg_classes classes;
} cyg_bpe_space;

void cyg_bpe_space_free(cyg_bpe_space *space);

/* Appends the ids of a stretch of valid UTF-8, cut by the rule. Returns 0, or -1 when memory is out. */
int cyg_bpe_encode(const cyg_bpe *bpe, const cyg_split_rule *rule, cyg_bpe_space *space, const uint8_t *text, size_t length, cyg_ids *ids);

/* The same for pieces whose ends are known. */
int cyg_bpe_encode_pieces(const cyg_bpe *bpe, cyg_bpe_space *space, const uint8_t *text, size_t length, size_t begin, const size_t *ends, size_t count,
                          cyg_ids *ids);

#endif
