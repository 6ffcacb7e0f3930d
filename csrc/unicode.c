/* Decomposition, composition (UAX #15) and grapheme clusters (UAX #29) over the generated tables. */
#include "unicode.h"

/* First and last of each range of code points that Unicode 16.0 assigned, ascending. */
static const uint32_t new_in_16[][2] = {
    {0x897, 0x897}, {0x1B4E, 0x1B4F}, {0x1B7F, 0x1B7F}, {0x1C89, 0x1C8A}, {0x2427, 0x2429}, {0x31E4, 0x31E5}, {0xA7CB, 0xA7CD}, {0xA7DA, 0xA7DC},
    {0x105C0, 0x105F3}, {0x10D40, 0x10D65}, {0x10D69, 0x10D85}, {0x10D8E, 0x10D8F}, {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFC}, {0x11380, 0x11389},
    {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA},
    {0x113CC, 0x113D5}, {0x113D7, 0x113D8}, {0x113E1, 0x113E2}, {0x116D0, 0x116E3}, {0x11BC0, 0x11BE1}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A},
    {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D79}, {0x18CFF, 0x18CFF}, {0x1CC00, 0x1CCF9}, {0x1CD00, 0x1CEB3}, {0x1E5D0, 0x1E5FA},
    {0x1E5FF, 0x1E5FF}, {0x1F8B2, 0x1F8BB}, {0x1F8C0, 0x1F8C1}, {0x1FA89, 0x1FA89}, {0x1FA8F, 0x1FA8F}, {0x1FABE, 0x1FABE}, {0x1FAC6, 0x1FAC6},
    {0x1FADC, 0x1FADC}, {0x1FADF, 0x1FADF}, {0x1FAE9, 0x1FAE9}, {0x1FBCB, 0x1FBEF},
};

int cyg_is_new_in_16(uint32_t c)
{
    unsigned k = cyg_unicode_class(c);
    if ((k >> 5 & 3) != 2 || !(k & 31)) /* most characters are older than 10.0 */
        return 0;
    size_t low = 0, high = sizeof new_in_16 / sizeof *new_in_16;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > new_in_16[middle][1])
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof new_in_16 / sizeof *new_in_16 && c >= new_in_16[low][0];
}

enum { S_BASE = 0xAC00, L_BASE = 0x1100, V_BASE = 0x1161, T_BASE = 0x11A7, L_COUNT = 19, V_COUNT = 21, T_COUNT = 28 };
enum { N_COUNT = V_COUNT * T_COUNT, S_COUNT = L_COUNT * N_COUNT };

static int decompose_hangul(uint32_t s, uint32_t *out)
{
    out[0] = L_BASE + s / N_COUNT;
    out[1] = V_BASE + s % N_COUNT / T_COUNT;
    if (s % T_COUNT == 0)
        return 2;
    out[2] = T_BASE + s % T_COUNT;
    return 3;
}

int cyg_decompose(uint32_t c, int compatibility, uint32_t *out)
{
    unsigned place = 0;
    if (c - S_BASE < S_COUNT)
        return decompose_hangul(c - S_BASE, out);
    if (c >= 0xA0 && c < 0x110000)
        place = compatibility ? cyg_compatibility_data[(unsigned)cyg_compatibility_index[c >> 8] << 8 | (c & 255)]
                              : cyg_canonical_data[(unsigned)cyg_canonical_index[c >> 8] << 8 | (c & 255)];
    if (!place) {
        out[0] = c;
        return 1;
    }
    int n = (int)cyg_decomposition_pool[place];
    for (int i = 0; i < n; i++)
        out[i] = cyg_decomposition_pool[place + 1 + (unsigned)i];
    return n;
}

uint32_t cyg_compose(uint32_t first, uint32_t second)
{
    if (first - L_BASE < L_COUNT && second - V_BASE < V_COUNT)
        return S_BASE + ((first - L_BASE) * V_COUNT + (second - V_BASE)) * T_COUNT;
    if (first - S_BASE < S_COUNT && (first - S_BASE) % T_COUNT == 0 && second > T_BASE && second < T_BASE + T_COUNT)
        return first + (second - T_BASE);
    uint32_t low = 0, high = cyg_composition_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const uint32_t *row = cyg_compositions + 3 * middle;
        if (row[0] == first && row[1] == second)
            return row[2];
        if (row[0] < first || (row[0] == first && row[1] < second))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

/* Grapheme_Cluster_Break values, in the order of the table's low four bits; the conjunct property follows from bit 4. */
enum { OTHER, CR, LF, CONTROL, EXTEND, ZWJ, REGIONAL, PREPEND, SPACING_MARK, HANGUL_L, HANGUL_V, HANGUL_T, HANGUL_LV, HANGUL_LVT, PICTOGRAPHIC };
enum { NO_CONJUNCT, LINKER, CONSONANT, CONJUNCT_EXTEND };

static int joins(const cyg_grapheme_state *state, unsigned next, unsigned conjunct)
{
    unsigned previous = state->previous;
    if (previous == CR && next == LF)
        return 1; /* GB3 */
    if ((previous >= CR && previous <= CONTROL) || (next >= CR && next <= CONTROL))
        return 0; /* GB4, GB5 */
    if (previous == HANGUL_L && (next == HANGUL_L || next == HANGUL_V || next == HANGUL_LV || next == HANGUL_LVT))
        return 1; /* GB6 */
    if ((previous == HANGUL_LV || previous == HANGUL_V) && (next == HANGUL_V || next == HANGUL_T))
        return 1; /* GB7 */
    if ((previous == HANGUL_LVT || previous == HANGUL_T) && next == HANGUL_T)
        return 1; /* GB8 */
    if (next == EXTEND || next == ZWJ || next == SPACING_MARK || previous == PREPEND)
        return 1; /* GB9, GB9a, GB9b */
    if (state->conjunct == 2 && conjunct == CONSONANT)
        return 1; /* GB9c */
    if (state->pictographic == 2 && next == PICTOGRAPHIC)
        return 1; /* GB11 */
    return previous == REGIONAL && next == REGIONAL && state->regional_odd; /* GB12, GB13 */
}

/* Marks of the Basic Multilingual Plane that came with Unicode 17.0, which the reference for clusters knows. */
static int is_mark_of_17(uint32_t c) { return c - 0x1ACF <= 0x1ADD - 0x1ACF || c - 0x1AE0 <= 0x1AEB - 0x1AE0; }

int cyg_grapheme_begins(cyg_grapheme_state *state, uint32_t c)
{
    unsigned record = c < 0x110000 ? cyg_grapheme_data[(unsigned)cyg_grapheme_index[c >> 8] << 8 | (c & 255)] : 0;
    if (is_mark_of_17(c))
        record = CONJUNCT_EXTEND << 4 | EXTEND;
    unsigned next = record & 15, conjunct = record >> 4;
    int begins = !state->started || !joins(state, next, conjunct);
    state->started = 1;
    state->previous = (uint8_t)next;
    state->regional_odd = next == REGIONAL && !state->regional_odd;
    /* pictographic: 1 after a pictograph and its extenders, 2 when a joiner followed. */
    if (next == PICTOGRAPHIC)
        state->pictographic = 1;
    else if (next == ZWJ && state->pictographic == 1)
        state->pictographic = 2;
    else if (next != EXTEND || state->pictographic == 2)
        state->pictographic = 0;
    /* conjunct: 1 after a consonant and its extenders, 2 when a linker was among them. */
    if (conjunct == CONSONANT)
        state->conjunct = 1;
    else if (conjunct == LINKER && state->conjunct)
        state->conjunct = 2;
    else if (conjunct == NO_CONJUNCT)
        state->conjunct = 0;
    return begins;
}
