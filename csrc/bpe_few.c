/* The first symbols of a byte-level piece and their merges. */
#include "bpe_few.h"

#include "bpe_starts.h"

static int is_short_ascii(const cyg_piece *piece)
{
    return piece->length <= CYG_SHORT_BYTES && !((piece->low | piece->high) & UINT64_C(0x8080808080808080));
}

/* Characters where they begin as one symbol, else bytes. Returns how many, 0 where there are more than fit. */
static size_t take_characters(const cyg_bpe *bpe, cyg_few *f, const uint8_t *piece, size_t length)
{
    size_t n = 0, size;
    for (size_t i = 0; i < length; i += size) {
        if (n == CYG_FEW) return 0;
        int32_t id = piece[i] >= 0xC0 ? cyg_start_at(bpe->starts, piece, i, length, &size) : -1;
        if (id < 0) id = bpe->byte_id[piece[i]], size = 1;
        f->id[n++] = id;
    }
    return n;
}

int cyg_few_begin(const cyg_bpe *bpe, cyg_few *f, const cyg_piece *piece)
{
    if (!bpe->starts) return 0;
    f->count = piece->length;
    if (is_short_ascii(piece)) return 1;
    f->count = take_characters(bpe, f, piece->start, piece->length);
    for (size_t i = 0; i + 1 < f->count; i++) CYG_PREFETCH(cyg_pair_locate(&bpe->pairs, f->id[i], f->id[i + 1]).line);
    return f->count > 0;
}

/* All bytes that the key of a short piece has room for: the same work for every length. */
static void look_up_ascii(const cyg_bpe *bpe, cyg_few *f, const cyg_piece *piece)
{
    uint8_t bytes[CYG_SHORT_BYTES + 1];
    for (unsigned i = 0; i < 8; i++) bytes[i] = (uint8_t)(piece->low >> 8 * i), bytes[8 + i] = (uint8_t)(piece->high >> 8 * i);
    for (unsigned i = 0; i < CYG_SHORT_BYTES; i++) {
        f->id[i] = bpe->byte_id[bytes[i]];
        f->merge[i] = cyg_merge_at(bpe->ascii_pairs[bytes[i] << 7 | bytes[i + 1]], i);
    }
}

void cyg_few_look_up(const cyg_bpe *bpe, cyg_few *f, const cyg_piece *piece)
{
    if (is_short_ascii(piece))
        look_up_ascii(bpe, f, piece);
    else
        for (size_t i = 0; i + 1 < f->count; i++) f->merge[i] = cyg_merge_at(cyg_bpe_merge(bpe, f->id[i], f->id[i + 1]), (unsigned)i);
    cyg_few_ready(&bpe->pairs, f, f->count);
}
