/* The merge tables of a vocabulary. */
#include "bpe.h"

#include <string.h>

#include "bpe_rank.h"
#include "bpe_starts.h"
#include "bpe_tokens.h"
#include "cyg_table.h"
#include "scan_classes.h"

int cyg_bpe_init(cyg_bpe *bpe, size_t merges, size_t tokens)
{
    memset(bpe, 0, sizeof *bpe);
    bpe->unk = -1;
    for (int b = 0; b < 256; b++) bpe->byte_id[b] = -1;
    bpe->merges = merges;
    bpe->pair_bits = cyg_bits_for(merges);
    size_t slots = (size_t)1 << bpe->pair_bits;
    bpe->pairs = cyg_table_alloc(slots * sizeof *bpe->pairs);
    bpe->pair_filter = cyg_table_alloc(slots << CYG_PAIR_FILTER_BITS >> 3);
    bpe->merged = malloc((merges + 1) * sizeof *bpe->merged);
    bpe->tokens = calloc(1, sizeof *bpe->tokens);
    if (!bpe->pairs || !bpe->pair_filter || !bpe->merged || !bpe->tokens) return -1;
    memset(bpe->pairs, 0xFF, slots * sizeof *bpe->pairs);
    struct cyg_token_table *t = bpe->tokens;
    t->bits = cyg_bits_for(tokens);
    t->capacity = tokens;
    t->tokens = malloc((tokens + 1) * sizeof *t->tokens);
    t->slots = cyg_table_alloc(((size_t)1 << t->bits) * sizeof *t->slots);
    return t->tokens && t->slots ? 0 : -1;
}

void cyg_bpe_free(cyg_bpe *bpe)
{
    free(bpe->pairs);
    free(bpe->pair_filter);
    free(bpe->merged);
    free(bpe->byte_pairs);
    free(bpe->neighbours);
    free(bpe->whole);
    cyg_starts_free(bpe->starts);
    if (bpe->tokens) {
        free(bpe->tokens->tokens);
        free(bpe->tokens->slots);
        free(bpe->tokens);
    }
    for (int v = 0; v < 4; v++) {
        if (!bpe->chars[v]) continue;
        for (int p = 0; p < 0x1100; p++) free(bpe->chars[v]->page[p]);
        free(bpe->chars[v]);
    }
    memset(bpe, 0, sizeof *bpe);
}

void cyg_bpe_add_merge(cyg_bpe *bpe, int32_t left, int32_t right, uint32_t rank, int32_t merged)
{
    uint64_t key = cyg_pair_key(left, right), hash = cyg_pair_hash(key), bit = hash >> (64 - bpe->pair_bits - CYG_PAIR_FILTER_BITS);
    size_t mask = ((size_t)1 << bpe->pair_bits) - 1, slot = (size_t)(hash >> (64 - bpe->pair_bits));
    bpe->pair_filter[bit >> 6] |= UINT64_C(1) << (bit & 63);
    while (bpe->pairs[slot] != CYG_PAIR_EMPTY && bpe->pairs[slot] >> 24 != key >> 24) slot = (slot + 1) & mask;
    bpe->pairs[slot] = key | rank;
    bpe->merged[rank] = merged;
}

uint32_t cyg_bpe_rank(const cyg_bpe *bpe, int32_t left, int32_t right) { return cyg_rank_of(bpe, left, right); }

int cyg_bpe_finish(cyg_bpe *bpe)
{
    if (!bpe->byte_level) return 0;
    bpe->byte_pairs = malloc(65536 * sizeof *bpe->byte_pairs);
    if (!bpe->byte_pairs) return -1;
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++) {
            int known = bpe->byte_id[a] >= 0 && bpe->byte_id[b] >= 0;
            bpe->byte_pairs[a << 8 | b] = known ? cyg_bpe_rank(bpe, bpe->byte_id[a], bpe->byte_id[b]) : CYG_NO_RANK;
        }
    return 0;
}

int cyg_bpe_add_char(cyg_bpe *bpe, unsigned variant, uint32_t code_point, int32_t id)
{
    struct cyg_char_ids **chars = &bpe->chars[variant];
    if (!*chars && !(*chars = calloc(1, sizeof **chars))) return -1;
    int32_t **page = &(*chars)->page[code_point >> 8];
    if (!*page) {
        if (!(*page = malloc(256 * sizeof **page))) return -1;
        memset(*page, 0xFF, 256 * sizeof **page);
    }
    (*page)[code_point & 255] = id;
    return 0;
}

int cyg_bpe_add_neighbours(cyg_bpe *bpe, const uint8_t *token, size_t size)
{
    if (!bpe->neighbours && !(bpe->neighbours = cyg_table_alloc(((size_t)1 << CYG_NEIGHBOUR_BITS) / 8))) return -1;
    for (size_t i = 0, next; i < size; i = next) {
        next = i + cyg_utf8_size(token[i]);
        if (next >= size) break;
        uint64_t bit = cyg_neighbour_bit(cyg_utf8_decode(token + i), cyg_utf8_decode(token + next));
        bpe->neighbours[bit >> 6] |= UINT64_C(1) << (bit & 63);
    }
    return 0;
}
