/* Which tokens a byte-level piece of the same bytes merges to: such a piece is found in the table of tokens and need not be merged. */
#ifndef CYG_BPE_WHOLE_H
#define CYG_BPE_WHOLE_H

#include "bpe.h"

/* Sets bpe->whole from `count` merges (left, right, merged) in order of rank, after all tokens and cyg_bpe_finish(); leaves it NULL where two tokens
 * have the same id. Returns 0, or -1 when memory is out. */
int cyg_bpe_find_whole(cyg_bpe *bpe, const int32_t *merges, size_t count);

#endif
