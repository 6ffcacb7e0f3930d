# The kernel table of this process. Declarations follow csrc/cyg_kernels.h, where every contract is written down.
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t


cdef extern from "cyg_kernels.h" nogil:
    enum: CYG_GROUP
    enum: CYG_KEY_BLOCK
    enum: CYG_KEY_CHUNK
    enum: CYG_ATTENTION_ROWS

    cdef enum cyg_weight_kind:
        CYG_F32
        CYG_F16
        CYG_BF16
        CYG_I8
        CYG_I8H
        CYG_I4
        CYG_I4M
        CYG_WEIGHT_KINDS

    cdef enum cyg_basis:
        CYG_VALUES
        CYG_CODES
        CYG_HADAMARD

    cdef enum cyg_kv_kind:
        CYG_KV_F32
        CYG_KV_F16

    cdef enum cyg_activation:
        CYG_IDENTITY
        CYG_RELU
        CYG_GELU
        CYG_GELU_TANH
        CYG_GELU_QUICK
        CYG_SILU
        CYG_TANH
        CYG_SIGMOID
        CYG_RELU2
        CYG_ACTIVATIONS

    struct cyg_product:
        const void *weight
        int64_t n
        int64_t k
        int64_t first_panel
        int64_t last_panel
        int64_t m
        const float *x
        int64_t ldx
        const int8_t *q
        const float *q_scale
        const int32_t *q_sum
        const float *bias
        float alpha
        int accumulate
        float *y
        int64_t ldy

    struct cyg_attention:
        cyg_kv_kind kv_kind
        const void *const *blocks
        int64_t k_offset
        int64_t v_offset
        int64_t keys
        int64_t first_query
        int64_t tokens
        int heads
        int head_dim
        const float *q
        int64_t q_token_stride
        int64_t q_head_stride
        float *out
        int64_t out_token_stride
        int64_t out_head_stride
        float scale
        float softcap
        int causal
        int64_t window
        const float *relative
        int64_t relative_stride
        const float *key_bias
        int64_t key_bias_stride
        const float *bias
        int64_t bias_head_stride
        int64_t bias_token_stride
        float *parts

    struct cyg_kernels:
        const char *name
        int width
        int nr
        size_t (*panel_bytes)(cyg_weight_kind kind, int64_t k) noexcept nogil
        void (*pack_float)(cyg_weight_kind kind, const float *w, int64_t ldw, int64_t rows, int64_t k, void *panel) noexcept nogil
        void (*pack_codes)(cyg_weight_kind kind, const uint8_t *codes, const float *scales, const float *minima, int64_t rows, int64_t k,
                           void *panel) noexcept nogil
        void (*unpack_row)(cyg_weight_kind kind, const void *weight, int64_t k, int64_t row, float *out) noexcept nogil
        void (*product[6])(const cyg_product *share) noexcept nogil
        void (*quantize_rows)(cyg_basis basis, const float *x, int64_t ldx, int64_t m, int64_t k, int8_t *q, float *scale, int32_t *sum) noexcept nogil
        void (*quantize_weights)(cyg_weight_kind kind, const float *w, int64_t ldw, int64_t rows, int64_t k, uint8_t *codes, float *scales,
                                 float *minima) noexcept nogil
        void (*attention)(const cyg_attention *share) noexcept nogil
        void (*attention_part)(const cyg_attention *share, int64_t chunk, float *parts) noexcept nogil
        void (*attention_join)(const cyg_attention *share, int64_t chunks, float *parts) noexcept nogil
        int (*store_kv)(cyg_kv_kind kind, const float *key, const float *value, int head_dim, int slot, void *k, void *v) noexcept nogil
        void (*layer_norm)(const float *x, int64_t ldx, int64_t m, int64_t d, const float *weight, const float *bias, float eps, float *y,
                           int64_t ldy) noexcept nogil
        void (*rms_norm)(const float *x, int64_t ldx, int64_t m, int64_t d, const float *weight, float eps, float *y, int64_t ldy) noexcept nogil
        void (*activate)(cyg_activation f, const float *x, int64_t n, float *y) noexcept nogil
        void (*gate)(cyg_activation f, const float *gate, int64_t ldg, const float *up, int64_t ldu, int64_t m, int64_t d, float *y,
                     int64_t ldy) noexcept nogil
        void (*rotate)(float *x, int64_t heads, int64_t stride, int64_t half, int interleaved, const float *cos, const float *sin) noexcept nogil
        void (*axpy)(int64_t n, float a, const float *x, float *y) noexcept nogil
        void (*multiply)(int64_t n, const float *x, float *y) noexcept nogil
        void (*softmax)(float *x, int64_t ldx, const uint8_t *mask, int64_t ldm, int64_t m, int64_t n) noexcept nogil
        void (*log_softmax)(float *x, int64_t ldx, int64_t m, int64_t n) noexcept nogil
        void (*softcap)(int64_t n, float cap, float *x) noexcept nogil
        int64_t (*argmax)(int64_t n, const float *x) noexcept nogil
        void (*f16_to_f32)(const uint16_t *x, int64_t n, float *y) noexcept nogil
        void (*f32_to_f16)(const float *x, int64_t n, uint16_t *y) noexcept nogil
        void (*bf16_to_f32)(const uint16_t *x, int64_t n, float *y) noexcept nogil
        void (*f32_to_bf16)(const float *x, int64_t n, uint16_t *y) noexcept nogil


# The table chosen at import: the best one this CPU can run, or the one CYGNET_ISA names.
cdef const cyg_kernels *kernels() noexcept nogil
# The table of a name as isa_names() lists it; None is the chosen one. Raises OptionError for a name that cannot run here.
cdef const cyg_kernels *kernels_of(isa) except NULL
