/* Building the table of merges. */
#include "bpe_pairs.h"

#include "cyg_table.h"

/* Bits of the line that a mark has: enough to tell the lines apart in which a pair may lie. */
enum { TRIED_BITS = 4, MARK_BITS = 32 };

static unsigned bits_of(uint64_t number)
{
    unsigned bits = 1;
    while (number >> bits) bits++;
    return bits;
}

static void replace(cyg_line *line, uint32_t mark, uint32_t merge)
{
    for (size_t k = 0;; line += ++k / CYG_LINE_WAYS, k %= CYG_LINE_WAYS) {
        if (line->mark[k] != mark) continue;
        line->value[k] = merge | (line->value[k] & CYG_GOES_ON);
        return;
    }
}

static int add(cyg_pairs *p, const int32_t *merge, uint32_t rank)
{
    cyg_pair_place at = cyg_pair_locate(p, merge[0], merge[1]);
    cyg_line *line = p->lines + (at.line - p->lines);
    p->merged[rank] = merge[2];
    if (!cyg_pair_merge(at)) return cyg_lines_add(line, at.mark, cyg_merge_of_rank(rank));
    replace(line, at.mark, cyg_merge_of_rank(rank));
    return 0;
}

/* Returns 0, 1 where the lines are too few, -1 when memory is out. */
static int add_all(cyg_pairs *p, const int32_t *merges, size_t count)
{
    p->mark_bits = 2 * p->id_bits - p->line_bits + (p->line_bits < TRIED_BITS ? p->line_bits : TRIED_BITS);
    p->lines = cyg_table_alloc((((size_t)1 << p->line_bits) + CYG_LINES_TRIED) * sizeof *p->lines);
    if (!p->lines) return -1;
    for (size_t i = 0; i < count; i++)
        if (add(p, merges + 3 * i, (uint32_t)i)) return 1;
    return 0;
}

int cyg_pairs_init(cyg_pairs *p, const int32_t *merges, size_t count, int32_t largest)
{
    p->id_bits = bits_of((uint64_t)largest);
    p->line_bits = 2 * p->id_bits > MARK_BITS - TRIED_BITS ? 2 * p->id_bits - (MARK_BITS - TRIED_BITS) : 0;
    while (p->line_bits < 2 * p->id_bits && cyg_lines_are_few(p->line_bits, count)) p->line_bits++;
    p->merged = malloc((count + 1) * sizeof *p->merged);
    if (!p->merged) return -1;
    for (unsigned most = p->line_bits + CYG_LINES_GROWTH; p->line_bits <= most; p->line_bits++) {
        int status = add_all(p, merges, count);
        if (status <= 0) return status;
        free(p->lines);
        p->lines = NULL;
    }
    return -1;
}

void cyg_pairs_free(cyg_pairs *p)
{
    free(p->lines);
    free(p->merged);
}
