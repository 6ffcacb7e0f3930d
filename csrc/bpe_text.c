/* Rewriting of spaces, and cuts where no merge can reach across. */
#include "bpe_text.h"

#include <string.h>

#include "scan_classes.h"

void cyg_text_space_free(cyg_text_space *space)
{
    free(space->text);
    free(space->ends);
    memset(space, 0, sizeof *space);
}

static int reserve(cyg_text_space *space, size_t length)
{
    if (length <= space->capacity) return 0;
    size_t capacity = length + length / 2 + 256;
    uint8_t *text = realloc(space->text, capacity);
    if (text) space->text = text;
    size_t *ends = text ? realloc(space->ends, capacity * sizeof *ends) : NULL;
    if (!ends) return -1;
    space->ends = ends;
    space->capacity = capacity;
    return 0;
}

static int begins_with_sign(const cyg_text_rule *rule, const uint8_t *text, size_t length)
{
    if (rule->replace_spaces && length && text[0] == ' ') return 1;
    return length >= rule->sign_size && memcmp(text, rule->sign, rule->sign_size) == 0;
}

static size_t rewrite(const cyg_text_rule *rule, uint8_t *out, const uint8_t *text, size_t length, int first)
{
    uint8_t *at = out;
    int wanted = rule->prepend == CYG_PREPEND_SIGN || rule->prepend == CYG_PREPEND_MISSING || (rule->prepend == CYG_PREPEND_FIRST && first);
    if (wanted && (rule->prepend == CYG_PREPEND_SIGN || !begins_with_sign(rule, text, length))) {
        memcpy(at, rule->sign, rule->sign_size);
        at += rule->sign_size;
    }
    if (!rule->replace_spaces) {
        memcpy(at, text, length);
        return (size_t)(at + length - out);
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] != ' ') {
            *at++ = text[i];
            continue;
        }
        memcpy(at, rule->sign, rule->sign_size);
        at += rule->sign_size;
    }
    return (size_t)(at - out);
}

/* Pieces end before each sign where the rule says so, and wherever no token holds the two characters side by side: no merge joins those. */
static size_t cut(const cyg_bpe *bpe, const cyg_text_rule *rule, cyg_text_space *space, size_t length)
{
    const uint8_t *text = space->text;
    size_t count = 0;
    if (bpe->neighbours || rule->split_at_sign) {
        uint32_t sign = cyg_utf8_decode(rule->sign), previous = cyg_utf8_decode(text);
        for (size_t i = cyg_utf8_size(text[0]); i < length; i += cyg_utf8_size(text[i])) {
            uint32_t c = cyg_utf8_decode(text + i);
            if ((rule->split_at_sign && c == sign) || (bpe->neighbours && !cyg_bpe_are_neighbours(bpe, previous, c))) space->ends[count++] = i;
            previous = c;
        }
    }
    space->ends[count++] = length;
    return count;
}

int cyg_bpe_encode_text(const cyg_bpe *bpe, const cyg_text_rule *rule, cyg_bpe_space *cache, cyg_text_space *space, const uint8_t *text, size_t length,
                        int first, cyg_ids *ids)
{
    if (!length) return 0;
    if (length > SIZE_MAX / 16 || reserve(space, length * (rule->replace_spaces ? rule->sign_size : 1) + rule->sign_size)) return -1;
    length = rewrite(rule, space->text, text, length, first);
    size_t count = cut(bpe, rule, space, length);
    return cyg_bpe_encode_pieces(bpe, cache, space->text, length, 0, space->ends, count, ids);
}
