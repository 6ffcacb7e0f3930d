/* Reads the list of merges of a JSON document (RFC 8259). */
#include "bpe_json.h"

#include <string.h>

#include "json_scan.h"

enum { TOKEN_MAX = 4096 };

/* One merge: the two parts side by side in `text`. */
static int read_merge(cyg_json *c, uint8_t *text, size_t *left, size_t *right)
{
    if (cyg_json_take(c, '['))
        return cyg_json_read_string(c, text, TOKEN_MAX, left) && cyg_json_take(c, ',') && cyg_json_read_string(c, text + *left, TOKEN_MAX, right) &&
               cyg_json_take(c, ']');
    size_t size;
    if (!cyg_json_read_string(c, text, TOKEN_MAX, &size)) return 0;
    uint8_t *space = memchr(text, ' ', size);
    if (!space || memchr(space + 1, ' ', size - (size_t)(space + 1 - text))) return 0;
    *left = (size_t)(space - text);
    *right = size - *left - 1;
    memmove(space, space + 1, *right);
    return 1;
}

static int find_ids(const cyg_bpe *vocab, uint8_t *text, size_t left, size_t right, size_t prefix, int32_t *out)
{
    if (right < prefix) return 0;
    out[0] = cyg_bpe_find_token(vocab, text, left);
    out[1] = cyg_bpe_find_token(vocab, text + left, right);
    if (prefix) memmove(text + left, text + left + prefix, right - prefix);
    out[2] = cyg_bpe_find_token(vocab, text, left + right - prefix);
    return out[0] >= 0 && out[1] >= 0 && out[2] >= 0;
}

int64_t cyg_json_read_merges(const cyg_bpe *vocab, const uint8_t *json, size_t length, size_t prefix, int32_t *out, size_t capacity)
{
    cyg_json c = {json + 1, json + length};
    uint8_t text[2 * TOKEN_MAX];
    int64_t count = 0;
    if (cyg_json_take(&c, ']')) return 0;
    for (;; count++) {
        size_t left, right;
        if ((size_t)count >= capacity || !read_merge(&c, text, &left, &right)) return -1 - count;
        if (!find_ids(vocab, text, left, right, prefix, out + 3 * count)) return -1 - count;
        if (cyg_json_take(&c, ']')) return count + 1;
        if (!cyg_json_take(&c, ',')) return -1 - count;
    }
}
