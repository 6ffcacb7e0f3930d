/* All kernel bodies and the table of one instruction set. A stub in isa/ has included its vector header and defined CYG_ISA, the name.
   A new kernel: its body among the includes, its name in the table. */
#include "simd/vec_math.inl.h"

#include "simd/hadamard.inl.c"
#include "simd/pack.inl.c"
#include "simd/quantize_rows.inl.c"
#include "simd/quantize_weights.inl.c"
#include "simd/gemm_f32.inl.c"
#include "simd/gemm_int.inl.c"
#include "simd/convert.inl.c"
#include "simd/elementwise.inl.c"
#include "simd/norm.inl.c"
#include "simd/activation.inl.c"
#include "simd/softmax.inl.c"
#include "simd/rope.inl.c"
#include "simd/attention.inl.c"

#define CYG_JOIN_(a, b) a##b
#define CYG_JOIN(a, b) CYG_JOIN_(a, b)
#define CYG_TEXT_(a) #a
#define CYG_TEXT(a) CYG_TEXT_(a)

const struct cyg_kernels CYG_JOIN(cyg_table_, CYG_ISA) = {
    .name = CYG_TEXT(CYG_ISA),
    .width = VF,
    .nr = NR,
    .panel_bytes = panel_bytes,
    .pack_float = pack_float,
    .pack_codes = pack_codes,
    .unpack_row = unpack_row,
    .product = {product_f32, product_f16, product_bf16, product_i8, product_i8, product_i4, product_i4m},
    .quantize_rows = quantize_rows,
    .quantize_weights = quantize_weights,
    .attention = attention,
    .attention_part = attention_part,
    .attention_join = attention_join,
    .store_kv = store_kv,
    .layer_norm = layer_norm,
    .rms_norm = rms_norm,
    .activate = activate,
    .gate = gate,
    .rotate = rotate,
    .axpy = axpy,
    .multiply = multiply,
    .softmax = softmax,
    .log_softmax = log_softmax,
    .softcap = softcap,
    .argmax = argmax,
    .f16_to_f32 = f16_to_f32,
    .f32_to_f16 = f32_to_f16,
    .bf16_to_f32 = bf16_to_f32,
    .f32_to_bf16 = f32_to_bf16,
};
