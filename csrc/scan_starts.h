/* Where pieces begin, found for 64 bytes of text at once by operations on class masks: the rules GPT2 and CL100K without cuts. */
#ifndef CYG_SCAN_STARTS_H
#define CYG_SCAN_STARTS_H

#include "scan_split.h"

/* A bit for each byte of a 64-byte word of the text that begins a piece. Words must be asked for in order, from 0. */
uint64_t cyg_starts_gpt2(cyg_splitter *s, size_t word);
uint64_t cyg_starts_cl100k(cyg_splitter *s, size_t word);

/* End of one of 's 't 're 've 'm 'll 'd at p, where there is an apostrophe; p where there is none. */
size_t cyg_contraction(const cyg_splitter *s, size_t p, int any_case);

#endif
