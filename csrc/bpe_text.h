/* Byte pair encoding of text whose spaces are a visible sign (SentencePiece's manner): the pipelines of Llama, Mistral and Gemma. */
#ifndef CYG_BPE_TEXT_H
#define CYG_BPE_TEXT_H

#include "bpe_encode.h"

typedef enum {
    CYG_PREPEND_NEVER,
    CYG_PREPEND_SIGN,       /* before every stretch of text */
    CYG_PREPEND_MISSING,    /* before every stretch that does not begin with one */
    CYG_PREPEND_FIRST       /* before the stretch that begins the text, unless it begins with one */
} cyg_prepend;

typedef struct {
    uint8_t sign[4];
    size_t sign_size;
    int replace_spaces;
    cyg_prepend prepend;
    int split_at_sign;      /* each sign begins a piece; else the stretch is one */
} cyg_text_rule;

/* The rewritten text and the ends of its pieces. */
typedef struct {
    uint8_t *text;
    size_t *ends;
    size_t capacity;
} cyg_text_space;

void cyg_text_space_free(cyg_text_space *space);

/* Appends the ids of a stretch of valid UTF-8; first: it begins the whole text. Returns 0, or -1 when memory is out. */
int cyg_bpe_encode_text(const cyg_bpe *bpe, const cyg_text_rule *rule, cyg_bpe_space *cache, cyg_text_space *space, const uint8_t *text, size_t length,
                        int first, cyg_ids *ids);

#endif
