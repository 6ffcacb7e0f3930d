/* Building the table of merges. */
#include "bpe_pairs.h"

#include "cyg_table.h"

/* How many bits more than a pair's own a mark has at most. */
enum { BEYOND_BITS = 4 };

static unsigned bits_of(uint64_t number)
{
    unsigned bits = 1;
    while (number >> bits) bits++;
    return bits;
}

static unsigned smaller(unsigned a, unsigned b) { return a < b ? a : b; }

/* In how many lines a pair can be told by its mark. */
static size_t lines_told(const cyg_pairs *p) { return (size_t)1 << (p->mark_bits + p->line_bits - 2 * p->id_bits); }

/* Returns 0, or 1 where the pair's lines are full. */
static int add(cyg_pairs *p, const int32_t *merge, uint32_t rank)
{
    cyg_pair_place at = cyg_pair_locate(p, merge[0], merge[1]);
    cyg_line *line = p->lines + (at.line - p->lines), *end = line + lines_told(p);
    size_t k = 0;
    while (line < end && line->value[k] && line->mark[k] != at.mark) {
        line += (k + 1) / CYG_LINE_WAYS;
        k = (k + 1) % CYG_LINE_WAYS;
    }
    if (line == end) return 1;
    line->mark[k] = at.mark;
    line->value[k] = cyg_merge_of_rank(rank);
    p->merged[rank] = merge[2];
    return 0;
}

/* Lines for all, behind them those that the last ones may go on in, and one that stays empty. Returns 0, 1 where they are too few, -1 when memory is out. */
static int add_all(cyg_pairs *p, const int32_t *merges, size_t count)
{
    p->mark_bits = smaller(smaller(2 * p->id_bits, 2 * p->id_bits - p->line_bits + BEYOND_BITS), 32);
    p->lines = cyg_table_alloc((((size_t)1 << p->line_bits) + lines_told(p)) * sizeof *p->lines);
    if (!p->lines) return -1;
    for (size_t i = 0; i < count; i++)
        if (add(p, merges + 3 * i, (uint32_t)i)) return 1;
    return 0;
}

int cyg_pairs_init(cyg_pairs *p, const int32_t *merges, size_t count, int32_t largest)
{
    p->id_bits = bits_of((uint64_t)largest);
    p->line_bits = 2 * p->id_bits - smaller(2 * p->id_bits, 32);
    while (p->line_bits < 2 * p->id_bits && ((size_t)CYG_LINE_WAYS << p->line_bits) * 4 < 7 * count) p->line_bits++;
    p->merged = malloc((count + 1) * sizeof *p->merged);
    if (!p->merged) return -1;
    int status;
    for (; (status = add_all(p, merges, count)) > 0; p->line_bits++) free(p->lines);
    return status;
}

void cyg_pairs_free(cyg_pairs *p)
{
    free(p->lines);
    free(p->merged);
}
