#include "bpe_gguf.h"

#include <string.h>

enum { MERGE_MAX = 4096 };

static size_t length_at(const uint8_t *p)
{
    uint64_t length = 0;
    for (int i = 0; i < 8; i++) length |= (uint64_t)p[i] << 8 * i;
    return (size_t)length;
}

/* One merge of `size` bytes; 0 where it is none, or longer than any vocabulary has. */
static int read_merge(const cyg_bpe *vocab, const uint8_t *text, size_t size, int32_t *out)
{
    uint8_t merged[MERGE_MAX];
    const uint8_t *space = memchr(text, ' ', size), *end = text + size;
    if (!space || size > MERGE_MAX || memchr(space + 1, ' ', (size_t)(end - space - 1))) return 0;
    size_t left = (size_t)(space - text), right = size - left - 1;
    memcpy(merged, text, left);
    memcpy(merged + left, space + 1, right);
    out[0] = cyg_bpe_find_token(vocab, text, left);
    out[1] = cyg_bpe_find_token(vocab, space + 1, right);
    out[2] = cyg_bpe_find_token(vocab, merged, left + right);
    return out[0] >= 0 && out[1] >= 0 && out[2] >= 0;
}

int64_t cyg_gguf_read_merges(const cyg_bpe *vocab, const uint8_t *strings, size_t count, int32_t *out)
{
    for (size_t i = 0; i < count; i++) {
        size_t size = length_at(strings);
        if (!read_merge(vocab, strings + 8, size, out + 3 * i)) return -1 - (int64_t)i;
        strings += 8 + size;
    }
    return (int64_t)count;
}
