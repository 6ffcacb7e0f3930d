from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from cygnet._core._lane cimport Lane, Workspace, cyg_ids


cdef extern from "scan_split.h" nogil:
    ctypedef enum cyg_word_rule:
        CYG_RULE_NONE
        CYG_RULE_GPT2
        CYG_RULE_CL100K
        CYG_RULE_O200K
        CYG_RULE_DEEPSEEK
    enum:
        CYG_CUT_EACH_NUMBER
        CYG_CUT_THREE_NUMBERS
        CYG_CUT_NUMBER_RUN
        CYG_CUT_CJK
    ctypedef struct cyg_split_rule:
        cyg_word_rule words
        unsigned cuts
        unsigned digits
    ctypedef struct cyg_splitter:
        pass
    void cyg_split_begin(cyg_splitter *s, const cyg_split_rule *rule, const cyg_classes *classes, const uint8_t *text, size_t length)
    size_t cyg_split_next(cyg_splitter *s, size_t *ends, size_t capacity)


cdef extern from "scan_classes.h" nogil:
    ctypedef struct cyg_classes:
        pass
    int cyg_classify(cyg_classes *c, const uint8_t *text, size_t length)
    void cyg_classes_free(cyg_classes *c)


cdef extern from "bpe.h" nogil:
    enum:
        CYG_BPE_MAX_ID
        CYG_BPE_MAX_MERGES
        CYG_NO_RANK
    ctypedef struct cyg_pairs:
        int32_t *merged
    ctypedef struct cyg_bpe:
        int byte_level
        int32_t *byte_id
        int32_t unk
        int fuse_unk
        int byte_fallback
        int ignore_merges
        uint8_t affix[2][64]
        size_t *affix_size
        cyg_pairs pairs
    ctypedef struct cyg_bpe_scratch:
        pass
    int cyg_bpe_init(cyg_bpe *bpe, size_t tokens)
    int cyg_pairs_init(cyg_pairs *pairs, const int32_t *merges, size_t count, int32_t largest)
    void cyg_bpe_free(cyg_bpe *bpe)
    int cyg_bpe_finish(cyg_bpe *bpe)
    uint32_t cyg_bpe_rank(const cyg_bpe *bpe, int32_t left, int32_t right)
    int cyg_bpe_add_token(cyg_bpe *bpe, const uint8_t *bytes, size_t size, int32_t id)
    int cyg_bpe_index_tokens(cyg_bpe *bpe)
    int32_t cyg_bpe_find_token(const cyg_bpe *bpe, const uint8_t *bytes, size_t size)
    int cyg_bpe_add_neighbours(cyg_bpe *bpe, const uint8_t *token, size_t size)
    int cyg_bpe_add_char(cyg_bpe *bpe, unsigned variant, uint32_t code_point, int32_t id)
    int cyg_bpe_piece(const cyg_bpe *bpe, cyg_bpe_scratch *scratch, const uint8_t *piece, size_t length, cyg_ids *ids, cyg_ids *sizes)
    int cyg_bpe_symbols(const cyg_bpe *bpe, cyg_bpe_scratch *scratch, const uint8_t *piece, size_t length, cyg_ids *ids)
    void cyg_bpe_scratch_free(cyg_bpe_scratch *scratch)


cdef extern from "bpe_whole.h" nogil:
    int cyg_bpe_find_whole(cyg_bpe *bpe, const int32_t *merges, size_t count)


cdef extern from "bpe_starts.h" nogil:
    int cyg_bpe_find_starts(cyg_bpe *bpe, const int32_t *merges, size_t count)


cdef extern from "bpe_encode.h" nogil:
    ctypedef struct cyg_bpe_space:
        cyg_bpe_scratch scratch
        cyg_classes classes
    void cyg_bpe_space_free(cyg_bpe_space *space)
    int cyg_bpe_encode(const cyg_bpe *bpe, const cyg_split_rule *rule, cyg_bpe_space *space, const uint8_t *text, size_t length, cyg_ids *ids)
    int cyg_bpe_encode_pieces(const cyg_bpe *bpe, cyg_bpe_space *space, const uint8_t *text, size_t length, size_t begin, const size_t *ends,
                              size_t count, cyg_ids *ids)


cdef extern from "bpe_text.h" nogil:
    ctypedef enum cyg_prepend:
        CYG_PREPEND_NEVER
        CYG_PREPEND_SIGN
        CYG_PREPEND_MISSING
        CYG_PREPEND_FIRST
    ctypedef struct cyg_text_rule:
        uint8_t sign[4]
        size_t sign_size
        int replace_spaces
        cyg_prepend prepend
        int split_at_sign
    ctypedef struct cyg_text_space:
        pass
    void cyg_text_space_free(cyg_text_space *space)
    int cyg_bpe_encode_text(const cyg_bpe *bpe, const cyg_text_rule *rule, cyg_bpe_space *cache, cyg_text_space *space, const uint8_t *text,
                            size_t length, int first, cyg_ids *ids)


cdef extern from "bpe_json.h" nogil:
    int64_t cyg_json_read_merges(const cyg_bpe *vocab, const uint8_t *json, size_t length, size_t prefix, int32_t *out, size_t capacity)


cdef extern from "bpe_gguf.h" nogil:
    int64_t cyg_gguf_read_merges(const cyg_bpe *vocab, const uint8_t *strings, size_t count, int32_t *out)
