/* The merge tables of a vocabulary. */
#include "bpe.h"

#include <string.h>

#include "bpe_starts.h"
#include "cyg_table.h"
#include "scan_classes.h"

int cyg_bpe_init(cyg_bpe *bpe, size_t tokens)
{
    memset(bpe, 0, sizeof *bpe);
    bpe->unk = -1;
    for (int b = 0; b < 256; b++) bpe->byte_id[b] = -1;
    return cyg_tokens_init(&bpe->tokens, tokens);
}

void cyg_bpe_free(cyg_bpe *bpe)
{
    cyg_pairs_free(&bpe->pairs);
    free(bpe->ascii_pairs);
    free(bpe->neighbours);
    free(bpe->whole);
    cyg_starts_free(bpe->starts);
    cyg_tokens_free(&bpe->tokens);
    for (int v = 0; v < 4; v++) {
        if (!bpe->chars[v]) continue;
        for (int p = 0; p < 0x1100; p++) free(bpe->chars[v]->page[p]);
        free(bpe->chars[v]);
    }
    memset(bpe, 0, sizeof *bpe);
}

int cyg_bpe_finish(cyg_bpe *bpe)
{
    if (!bpe->byte_level) return 0;
    bpe->ascii_pairs = malloc(128 * 128 * sizeof *bpe->ascii_pairs);
    if (!bpe->ascii_pairs) return -1;
    for (int a = 0; a < 128; a++)
        for (int b = 0; b < 128; b++) {
            int known = bpe->byte_id[a] >= 0 && bpe->byte_id[b] >= 0;
            bpe->ascii_pairs[a << 7 | b] = known ? cyg_bpe_merge(bpe, bpe->byte_id[a], bpe->byte_id[b]) : 0;
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
