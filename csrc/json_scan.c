/* See json_scan.h. Functions return 1 with the cursor behind what they read, or 0. */
#include "json_scan.h"

#include <math.h>
#include <string.h>

#include "utf8.h"

static void skip_space(cyg_json *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t')) c->at++;
}

int cyg_json_take(cyg_json *c, uint8_t wanted)
{
    skip_space(c);
    if (c->at >= c->end || *c->at != wanted) return 0;
    c->at++;
    return 1;
}

/* Past the string whose opening quote is at the cursor; 0 where it does not end. */
static int skip_string(cyg_json *c)
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
static int skip_value(cyg_json *c)
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

/* Past the key of a member, up to its value; which of the keys it is, `count` for none of them, -1 where there is no member. */
static int read_key(cyg_json *c, const char *const *keys, size_t count)
{
    skip_space(c);
    if (c->at >= c->end || *c->at != '"') return -1;
    const uint8_t *name = c->at + 1;
    if (!skip_string(c)) return -1;
    size_t size = (size_t)(c->at - 1 - name), which = 0;
    while (which < count && (strlen(keys[which]) != size || memcmp(name, keys[which], size) != 0)) which++;
    if (!cyg_json_take(c, ':')) return -1;
    skip_space(c);
    return (int)which;
}

void cyg_json_find_in_model(const uint8_t *json, size_t length, const char *const *keys, size_t count, cyg_json_span *spans)
{
    static const char *const outer[] = {"model"};
    cyg_json c = {json, json + length};
    memset(spans, 0, count * sizeof *spans);
    if (!cyg_json_take(&c, '{')) return;
    for (int which; (which = read_key(&c, outer, 1)) != 0;)
        if (which < 0 || !skip_value(&c) || !cyg_json_take(&c, ',')) return;
    if (!cyg_json_take(&c, '{')) return;
    for (size_t found = 0; found < count;) {
        int which = read_key(&c, keys, count);
        size_t begin = (size_t)(c.at - json);
        if (which < 0 || !skip_value(&c)) return;
        if ((size_t)which < count && spans[which].begin == spans[which].end) {
            spans[which] = (cyg_json_span){begin, (size_t)(c.at - json)};
            found++;
        }
        if (!cyg_json_take(&c, ',')) return;
    }
}

static int hex4(cyg_json *c, uint32_t *out)
{
    *out = 0;
    if (c->end - c->at < 4) return 0;
    for (int i = 0; i < 4; i++) {
        uint8_t b = *c->at++;
        uint32_t digit = b >= '0' && b <= '9' ? b - (uint32_t)'0' : (b | 32) >= 'a' && (b | 32) <= 'f' ? (b | 32) - 'a' + 10u : 16;
        if (digit > 15) return 0;
        *out = *out << 4 | digit;
    }
    return 1;
}

/* The escape after a backslash, as UTF-8; its size, 0 where it is none, or half a surrogate pair. */
static size_t read_escape(cyg_json *c, uint8_t *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (c->at >= c->end) return 0;
    uint8_t b = *c->at++;
    const char *name = b ? strchr(names, b) : NULL;
    if (name) return out[0] = (uint8_t)values[name - names], 1;
    uint32_t high, low;
    if (b != 'u' || !hex4(c, &high)) return 0;
    if (high < 0xD800 || high > 0xDFFF) return cyg_utf8_write(out, high);
    if (high > 0xDBFF || c->end - c->at < 6 || c->at[0] != '\\' || c->at[1] != 'u') return 0;
    c->at += 2;
    if (!hex4(c, &low) || low < 0xDC00 || low > 0xDFFF) return 0;
    return cyg_utf8_write(out, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
}

int cyg_json_read_string(cyg_json *c, uint8_t *out, size_t room, size_t *size)
{
    size_t n = 0;
    if (!cyg_json_take(c, '"')) return 0;
    while (c->at < c->end && n + 4 <= room) {
        uint8_t b = *c->at++;
        if (b == '"') {
            *size = n;
            return 1;
        }
        if (b < 0x20) return 0;
        if (b != '\\') {
            out[n++] = b;
            continue;
        }
        size_t escaped = read_escape(c, out + n);
        if (!escaped) return 0;
        n += escaped;
    }
    return 0;
}

/* Puts a run of digits behind those that *value has; how many, 0 where there are none or the number grows beyond 19. */
static int read_digits(cyg_json *c, uint64_t *value)
{
    int count = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++, count++) {
        if (*value >= UINT64_MAX / 10) return 0;
        *value = *value * 10 + (*c->at - (uint64_t)'0');
    }
    return count;
}

/* Digits that do not begin with a needless 0. */
static int read_whole(cyg_json *c, uint64_t *value)
{
    int zero = c->at < c->end && *c->at == '0', count = read_digits(c, value);
    return count && !(zero && count > 1);
}

int cyg_json_read_id(cyg_json *c, int32_t *out)
{
    uint64_t value = 0;
    skip_space(c);
    if (!read_whole(c, &value) || value > INT32_MAX) return 0;
    *out = (int32_t)value;
    return 1;
}

/* What a number is multiplied by a power of ten for, if it says so: e-5. */
static int read_exponent(cyg_json *c, int *power)
{
    uint64_t value = 0;
    if (c->at >= c->end || (*c->at | 32) != 'e') return 1;
    c->at++;
    int negative = c->at < c->end && *c->at == '-';
    if (c->at < c->end && (*c->at == '-' || *c->at == '+')) c->at++;
    if (!read_digits(c, &value) || value > 9999) return 0;
    *power += negative ? -(int)value : (int)value;
    return 1;
}

int cyg_json_read_score(cyg_json *c, double *out)
{
    uint64_t digits = 0;
    int power = 0;
    skip_space(c);
    int negative = c->at < c->end && *c->at == '-';
    c->at += negative;
    if (!read_whole(c, &digits)) return 0;
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        power = -read_digits(c, &digits);
        if (!power) return 0;
    }
    if (!read_exponent(c, &power)) return 0;
    double value = (double)digits;
    for (; power < -308; power += 308) value /= 1e308;
    value = power < 0 ? value / pow(10.0, -power) : value * pow(10.0, power);
    *out = negative ? -value : value;
    return isfinite(value);
}
