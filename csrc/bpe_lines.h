/* Lines of a hash table: eight marks, then the value that belongs to each; 0 is none.
 *
 * All marks of a line are compared at once, so that a look-up has no branch that is hard to foresee, whether it finds something or not. What finds no room
 * in its line lies in the next one. */
#ifndef CYG_BPE_LINES_H
#define CYG_BPE_LINES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__) || defined(_M_X64)
#define CYG_SSE2 1
#include <emmintrin.h>
#endif

enum { CYG_LINE_WAYS = 8 };

typedef struct {
    uint32_t mark[CYG_LINE_WAYS], value[CYG_LINE_WAYS];
} cyg_line;

/* The values of all entries with this mark, together. */
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

/* The same from this line on to the first that has room. */
static inline uint32_t cyg_lines_value(const cyg_line *line, uint32_t mark)
{
    uint32_t value = cyg_line_value(line, mark);
    while (line->value[CYG_LINE_WAYS - 1] && !value) value = cyg_line_value(++line, mark);
    return value;
}

#endif
