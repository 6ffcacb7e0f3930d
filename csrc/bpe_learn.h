/* New pieces of a batch: found out together, so that the memory can answer for one while others are worked on. */
#ifndef CYG_BPE_LEARN_H
#define CYG_BPE_LEARN_H

#include "bpe_encode.h"

enum { CYG_BATCH = 256 };

/* Puts those of at most CYG_BATCH pieces that are not in the cache there, except those too long for it; `ids` is left as it is. Returns 0, or -1 when
 * memory is out. */
int cyg_bpe_learn(const cyg_bpe *bpe, cyg_bpe_space *space, const cyg_piece *pieces, size_t count, cyg_ids *ids);

#endif
