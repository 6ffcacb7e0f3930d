/* A scanner for one list of a JSON document (RFC 8259). */
#include "bpe_json.h"

#include <string.h>

typedef struct {
    const uint8_t *at, *end;
} cursor;

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t')) c->at++;
}

/* Past the string whose opening quote is at the cursor; 0 where it does not end. */
static int skip_string(cursor *c)
{
    for (c->at++; c->at < c->end; c->at++) {
        if (*c->at == '"') {
            c->at++;
            return 1;
        }
        if (*c->at == '\\') c->at++;
    }
    return 0;
}

/* Past any value; nesting is only counted. */
static int skip_value(cursor *c)
{
    size_t depth = 0;
    do {
        skip_space(c);
        if (c->at >= c->end) return 0;
        uint8_t b = *c->at;
        if (b == '"') {
            if (!skip_string(c)) return 0;
        } else if (b == '{' || b == '[') {
            depth++;
            c->at++;
            continue;
        } else if (b == '}' || b == ']') {
            if (!depth) return 0;
            depth--;
            c->at++;
        } else if (b == ',' || b == ':') {
            if (!depth) return 0;
            c->at++;
        } else if (!b) {
            return 0;
        } else {
            while (c->at < c->end && *c->at && !strchr(",:]}[{\" \n\r\t", *c->at)) c->at++;
        }
    } while (depth);
    return 1;
}

/* The value of a key in the object at the cursor. */
static int find_key(cursor *c, const char *key)
{
    size_t size = strlen(key);
    skip_space(c);
    if (c->at >= c->end || *c->at != '{') return 0;
    c->at++;
    for (;;) {
        skip_space(c);
        if (c->at >= c->end || *c->at != '"') return 0;
        const uint8_t *name = c->at + 1;
        if (!skip_string(c)) return 0;
        int found = (size_t)(c->at - 1 - name) == size && memcmp(name, key, size) == 0;
        skip_space(c);
        if (c->at >= c->end || *c->at++ != ':') return 0;
        skip_space(c);
        if (found) return 1;
        if (!skip_value(c)) return 0;
        skip_space(c);
        if (c->at >= c->end || *c->at++ != ',') return 0;
    }
}

int cyg_json_find_merges(const uint8_t *json, size_t length, size_t *begin, size_t *end)
{
    cursor c = {json, json + length};
    if (!find_key(&c, "model") || !find_key(&c, "merges") || c.at >= c.end || *c.at != '[') return 0;
    *begin = (size_t)(c.at - json);
    if (!skip_value(&c)) return 0;
    *end = (size_t)(c.at - json);
    return 1;
}

static int hex4(cursor *c, uint32_t *out)
{
    *out = 0;
    if (c->end - c->at < 4) return 0;
    for (int i = 0; i < 4; i++) {
        uint8_t b = *c->at++;
        uint32_t digit = b >= '0' && b <= '9' ? b - '0' : (b | 32) >= 'a' && (b | 32) <= 'f' ? (b | 32) - 'a' + 10u : 16;
        if (digit > 15) return 0;
        *out = *out << 4 | digit;
    }
    return 1;
}

static size_t put_utf8(uint8_t *out, uint32_t c)
{
    if (c < 0x80) return out[0] = (uint8_t)c, 1;
    if (c < 0x800) return out[0] = (uint8_t)(0xC0 | c >> 6), out[1] = (uint8_t)(0x80 | (c & 63)), 2;
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12), out[1] = (uint8_t)(0x80 | (c >> 6 & 63)), out[2] = (uint8_t)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18), out[1] = (uint8_t)(0x80 | (c >> 12 & 63)), out[2] = (uint8_t)(0x80 | (c >> 6 & 63)), out[3] = (uint8_t)(0x80 | (c & 63));
    return 4;
}

/* The escape after a backslash, as UTF-8; 0 where it is none, or half a surrogate pair. */
static size_t read_escape(cursor *c, uint8_t *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (c->at >= c->end) return 0;
    uint8_t b = *c->at++;
    const char *name = b ? strchr(names, b) : NULL;
    if (name) return out[0] = (uint8_t)values[name - names], 1;
    uint32_t high, low;
    if (b != 'u' || !hex4(c, &high)) return 0;
    if (high < 0xD800 || high > 0xDFFF) return put_utf8(out, high);
    if (high > 0xDBFF || c->end - c->at < 6 || c->at[0] != '\\' || c->at[1] != 'u') return 0;
    c->at += 2;
    if (!hex4(c, &low) || low < 0xDC00 || low > 0xDFFF) return 0;
    return put_utf8(out, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
}

enum { TOKEN_MAX = 4096 };

/* A string, unescaped, of at most TOKEN_MAX bytes. */
static int read_string(cursor *c, uint8_t *out, size_t *size)
{
    *size = 0;
    if (c->at >= c->end || *c->at != '"') return 0;
    for (c->at++; c->at < c->end && *size + 4 <= TOKEN_MAX;) {
        uint8_t b = *c->at++;
        if (b == '"') return 1;
        if (b < 0x20) return 0;
        if (b != '\\') {
            out[(*size)++] = b;
            continue;
        }
        size_t n = read_escape(c, out + *size);
        if (!n) return 0;
        *size += n;
    }
    return 0;
}

/* One merge: the two parts side by side in `text`. */
static int read_merge(cursor *c, uint8_t *text, size_t *left, size_t *right)
{
    if (*c->at == '[') {
        c->at++;
        skip_space(c);
        if (!read_string(c, text, left)) return 0;
        skip_space(c);
        if (c->at >= c->end || *c->at++ != ',') return 0;
        skip_space(c);
        if (!read_string(c, text + *left, right)) return 0;
        skip_space(c);
        return c->at < c->end && *c->at++ == ']';
    }
    size_t size;
    if (!read_string(c, text, &size)) return 0;
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
    cursor c = {json + 1, json + length};
    uint8_t text[2 * TOKEN_MAX];
    int64_t count = 0;
    skip_space(&c);
    if (c.at < c.end && *c.at == ']') return 0;
    for (;; count++) {
        size_t left, right;
        skip_space(&c);
        if (c.at >= c.end || (size_t)count >= capacity || !read_merge(&c, text, &left, &right)) return -1 - count;
        if (!find_ids(vocab, text, left, right, prefix, out + 3 * count)) return -1 - count;
        skip_space(&c);
        if (c.at >= c.end) return -1 - count;
        if (*c.at == ']') return count + 1;
        if (*c.at++ != ',') return -1 - count;
    }
}
