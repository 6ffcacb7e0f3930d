/* Conversions between float32 and the half-precision types. */

#define CONVERT_HALF(type)                                                              \
    static void type##_to_f32(const uint16_t *x, int64_t n, float *y) {                 \
        int64_t i = 0;                                                                  \
        for (; i + VF <= n; i += VF) vf_store(y + i, vf_load_##type(x + i));            \
        if (i < n) vf_store_n(y + i, vf_get_##type(x + i, n - i), n - i);               \
    }                                                                                   \
    static void f32_to_##type(const float *x, int64_t n, uint16_t *y) {                 \
        int64_t i = 0;                                                                  \
        for (; i + VF <= n; i += VF) vf_store_##type(y + i, vf_load(x + i));            \
        if (i < n) vf_put_##type(y + i, vf_load_n(x + i, n - i), n - i);                \
    }
CONVERT_HALF(f16)
CONVERT_HALF(bf16)
#undef CONVERT_HALF
