# Declarations of csrc/unicode.h for the tokenizer extensions.
from libc.stdint cimport int32_t, uint8_t, uint32_t


cdef extern from "unicode.h" nogil:
    enum:
        CYG_IS_LETTER
        CYG_IS_MARK
        CYG_IS_NUMBER
        CYG_IS_PUNCTUATION
        CYG_IS_SYMBOL
        CYG_IS_SEPARATOR
        CYG_IS_OTHER
    const char *const cyg_script_names[]
    unsigned cyg_unicode_class(uint32_t c)
    unsigned cyg_unicode_category(uint32_t c)
    bint cyg_unicode_is(uint32_t c, uint32_t categories)
    bint cyg_unicode_8_is(uint32_t c, uint32_t categories)
    bint cyg_is_space(uint32_t c)
    bint cyg_is_numeric(uint32_t c)
    bint cyg_is_bert_punctuation(uint32_t c)
    bint cyg_is_new_in_16(uint32_t c)
    unsigned cyg_unicode_script(uint32_t c)
    unsigned cyg_combining_class(uint32_t c)
    uint32_t cyg_lower(uint32_t c)
    bint cyg_is_bert_accent(uint32_t c)
    bint cyg_is_bert_control(uint32_t c)
    bint cyg_is_bert_ideograph(uint32_t c)
    bint cyg_is_mark_9(uint32_t c)
    int CYG_MAX_DECOMPOSITION
    int cyg_decompose(uint32_t c, int compatibility, uint32_t *out)
    uint32_t cyg_compose(uint32_t first, uint32_t second)
    ctypedef struct cyg_grapheme_state:
        uint8_t started
    bint cyg_grapheme_begins(cyg_grapheme_state *state, uint32_t c)
