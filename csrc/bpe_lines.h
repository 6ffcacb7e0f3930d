/* Lines of a hash table: eight marks, then the value that belongs to each; 0 is none.
 *
 * All marks of a line are compared at once, so that a look-up has no branch that is hard to foresee, whether it finds something or not. What finds no room
 * in its line lies in the next one that has some, of CYG_LINES_TRIED: so many more lie behind the last. A line says whether there is such an entry. */
#ifndef CYG_BPE_LINES_H
#define CYG_BPE_LINES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__) || defined(_M_X64)
#define CYG_SSE2 1
#include <emmintrin.h>
#endif

/* A table whose lines are too few is made anew with twice as many, at most so often: no file that is meant to be read needs more. */
enum { CYG_LINE_WAYS = 8, CYG_LINES_TRIED = 16, CYG_LINES_GROWTH = 4 };

/* In the last value of a line: entries of the line lie in later ones. */
#define CYG_GOES_ON (UINT32_C(1) << 31)

typedef struct {
    uint32_t mark[CYG_LINE_WAYS], value[CYG_LINE_WAYS];
} cyg_line;

/* Whether 2^bits lines are too few for so many entries: half of the places stay empty at least. */
static inline int cyg_lines_are_few(unsigned bits, size_t entries) { return ((size_t)CYG_LINE_WAYS << bits) < 2 * entries; }

/* The values of all entries with this mark, together, and maybe CYG_GOES_ON. */
static inline uint32_t cyg_line_value(const cyg_line *line, uint32_t mark)
{
#ifdef CYG_SSE2
    const __m128i *at = (const __m128i *)(const void *)line;
    __m128i wanted = _mm_set1_epi32((int)mark);
    __m128i a = _mm_and_si128(_mm_cmpeq_epi32(_mm_loadu_si128(at), wanted), _mm_loadu_si128(at + 2));
    __m128i b = _mm_and_si128(_mm_cmpeq_epi32(_mm_loadu_si128(at + 1), wanted), _mm_loadu_si128(at + 3));
    a = _mm_or_si128(a, b);
    a = _mm_or_si128(a, _mm_unpackhi_epi64(a, a));
    return (uint32_t)_mm_cvtsi128_si32(_mm_or_si128(a, _mm_shuffle_epi32(a, 1)));
#else
    uint32_t value = 0;
    for (int k = 0; k < CYG_LINE_WAYS; k++) value |= line->mark[k] == mark ? line->value[k] : 0;
    return value;
#endif
}

/* The same of this line or the first of those after it that has such entries, without CYG_GOES_ON. */
static inline uint32_t cyg_lines_value(const cyg_line *line, uint32_t mark)
{
    uint32_t value = cyg_line_value(line, mark);
    const cyg_line *last = line + CYG_LINES_TRIED - 1;
    while (line->value[CYG_LINE_WAYS - 1] & CYG_GOES_ON && !value && line < last) value = cyg_line_value(++line, mark);
    return value & ~CYG_GOES_ON;
}

/* Returns 0, or 1 where none of the lines that are tried has room. */
static inline int cyg_lines_add(cyg_line *line, uint32_t mark, uint32_t value)
{
    for (const cyg_line *end = line + CYG_LINES_TRIED; line < end; line++) {
        size_t used = 0; /* counted rather than searched for: no branch that waits for the memory */
        for (int k = 0; k < CYG_LINE_WAYS; k++) used += line->value[k] != 0;
        if (used == CYG_LINE_WAYS) {
            line->value[CYG_LINE_WAYS - 1] |= CYG_GOES_ON;
            continue;
        }
        line->mark[used] = mark;
        line->value[used] = value;
        return 0;
    }
    return 1;
}

#endif
