/* Byte pair encoding (Sennrich et al. 2016, arXiv:1508.07909): merge tables, the merge of one piece, and a cache of pieces. */
#ifndef CYG_BPE_H
#define CYG_BPE_H

#include "bpe_pairs.h"
#include "bpe_tokens.h"
#include "cyg_ids.h"

enum { CYG_BPE_MAX_ID = (1 << 20) - 1 };

/* Symbols of characters: pages of 256, allocated where used. */
struct cyg_char_ids {
    int32_t *page[0x1100];
};

typedef struct {
    cyg_pairs pairs;
    size_t merges;
    uint32_t *ascii_pairs; /* by two ASCII bytes: the merge of their symbols; byte-level only */

    /* First symbols. Byte-level: the id of each byte. Otherwise by character: plain, not first, last, not first and last. */
    int byte_level;
    int32_t byte_id[256]; /* byte-level: symbol; otherwise the fallback token <0xNN>; -1 where there is none */
    struct cyg_char_ids *chars[4];

    /* Characters that begin as one symbol (bpe_starts.h). NULL: none. */
    struct cyg_starts *starts;

    /* A bit for each of many hashes: which two characters stand side by side in some merged token. NULL: not known. */
    uint64_t *neighbours;

    /* All tokens by their bytes, for whole-word look-ups. */
    struct cyg_token_table tokens;

    /* By id: whether the token's bytes merge to it (bpe_whole.h). NULL: not known. */
    uint8_t *whole;

    int32_t unk; /* -1: unknown characters are dropped */
    int fuse_unk, byte_fallback, ignore_merges;
    uint8_t affix[2][64]; /* bytes of the prefix of a character that is not first and of the suffix of the last one */
    size_t affix_size[2];
} cyg_bpe;

#define CYG_NO_RANK UINT32_MAX

/* Merging. Scratch memory grows to what the longest piece needs. */
typedef struct {
    int32_t *id;
    uint32_t *size, *previous, *next, *rank;
    uint64_t *heap;
    size_t capacity;
    void *memory;
} cyg_bpe_scratch;

int cyg_bpe_init(cyg_bpe *bpe, size_t tokens);
void cyg_bpe_free(cyg_bpe *bpe);

/* After all merges and byte ids: fills ascii_pairs. Returns 0, or -1 when memory is out. */
int cyg_bpe_finish(cyg_bpe *bpe);

/* The merge of a pair, or 0 (bpe_pairs.h). */
static inline uint32_t cyg_bpe_merge(const cyg_bpe *bpe, int32_t left, int32_t right) { return cyg_pair_merge(cyg_pair_locate(&bpe->pairs, left, right)); }
/* Its rank, or CYG_NO_RANK. */
static inline uint32_t cyg_bpe_rank(const cyg_bpe *bpe, int32_t left, int32_t right)
{
    uint32_t merge = cyg_bpe_merge(bpe, left, right);
    return merge ? cyg_merge_rank(merge) : CYG_NO_RANK;
}

/* Declares a token for whole-word look-ups; `bytes` must stay, and 16 be readable. Returns 0, or -1 when memory is out. */
int cyg_bpe_add_token(cyg_bpe *bpe, const uint8_t *bytes, size_t size, int32_t id);
/* After all tokens. Returns 0, or -1 when memory is out. */
int cyg_bpe_index_tokens(cyg_bpe *bpe);
int32_t cyg_bpe_find_token(const cyg_bpe *bpe, const uint8_t *bytes, size_t size);
/* Declares the symbol of a character; variant bits: 1 not first, 2 last. Returns 0, or -1 when memory is out. */
int cyg_bpe_add_char(cyg_bpe *bpe, unsigned variant, uint32_t code_point, int32_t id);

/* Declares the text of a merged token, valid UTF-8. Returns 0, or -1 when memory is out. */
int cyg_bpe_add_neighbours(cyg_bpe *bpe, const uint8_t *token, size_t size);

enum { CYG_NEIGHBOUR_BITS = 22 };

/* Whether some merged token may hold a directly before b; where not, text can be cut between them. */
static inline uint64_t cyg_neighbour_bit(uint32_t a, uint32_t b)
{
    return ((uint64_t)a << 21 | b) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - CYG_NEIGHBOUR_BITS);
}

static inline int cyg_bpe_are_neighbours(const cyg_bpe *bpe, uint32_t a, uint32_t b)
{
    uint64_t bit = cyg_neighbour_bit(a, b);
    return (int)(bpe->neighbours[bit >> 6] >> (bit & 63) & 1);
}

/* Whether a piece may be a token without merging, and the token of its bytes where it is. */
static inline int cyg_bpe_looks_up(const cyg_bpe *bpe) { return bpe->whole || bpe->ignore_merges; }
static inline int32_t cyg_bpe_if_whole(const cyg_bpe *bpe, int32_t token) { return token < 0 || bpe->ignore_merges || bpe->whole[token] ? token : -1; }

/* Appends the ids of one piece and, where `sizes` is given, the bytes each stands for. Returns 0, or -1 when memory is out. */
int cyg_bpe_piece(const cyg_bpe *bpe, cyg_bpe_scratch *scratch, const uint8_t *piece, size_t length, cyg_ids *ids, cyg_ids *sizes);
/* The same where it is known that the piece is no token. */
int cyg_bpe_merge_piece(const cyg_bpe *bpe, cyg_bpe_scratch *scratch, const uint8_t *piece, size_t length, cyg_ids *ids, cyg_ids *sizes);
/* Appends the ids of a piece's symbols before any merge. Returns 0, or -1 when memory is out. */
int cyg_bpe_symbols(const cyg_bpe *bpe, cyg_bpe_scratch *scratch, const uint8_t *piece, size_t length, cyg_ids *ids);
void cyg_bpe_scratch_free(cyg_bpe_scratch *scratch);

#endif
