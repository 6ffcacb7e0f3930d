/* Compares every kernel table that can run here with the scalar one, over sizes around the edges of vectors, in memory that ends at a page without
   access. Prints one line a table; the exit status is the number of tables that differ. tools/check_neon.sh runs it under emulation,
   tools/check_sanitizers.sh natively. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cyg_cpu.h"

enum { MOST_ARRAYS = 128 };

static struct { void *start; size_t bytes; } arrays[MOST_ARRAYS];
static int array_count;
static int failures;
static const struct cyg_kernels *table, *scalar;

/* Zeroed memory whose end borders on a page that may not be touched; lives until release(). */
static void *array_of(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = (bytes + page - 1) / page * page;
    char *start = mmap(NULL, inside + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED || mprotect(start + inside, page, PROT_NONE) || array_count == MOST_ARRAYS) abort();
    arrays[array_count].start = start;
    arrays[array_count++].bytes = inside + page;
    return start + inside - bytes;
}

static void release(void) {
    while (array_count) {
        array_count--;
        munmap(arrays[array_count].start, arrays[array_count].bytes);
    }
}

static float *floats(int64_t n) {
    return array_of((size_t)n * sizeof(float));
}

/* About normal numbers, the same in every run. */
static float random_float(void) {
    static uint32_t state = 12345;
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        state = state * 1664525u + 1013904223u;
        sum += (float)(state >> 8) / 16777216.0f - 0.5f;
    }
    return sum * 1.7f;
}

static float *random_floats(int64_t n) {
    float *x = floats(n);
    for (int64_t i = 0; i < n; i++) x[i] = random_float();
    return x;
}

static float *copy_of(const float *x, int64_t n) {
    return memcpy(floats(n), x, (size_t)n * sizeof(float));
}

static void fail(const char *what, int64_t n, int64_t place, double got, double want) {
    if (failures++ < 10) printf("%s: %s, size %lld, element %lld: %.9g, scalar %.9g\n", table->name, what, (long long)n, (long long)place, got, want);
}

static void same(const char *what, const float *got, const float *want, int64_t n, float tolerance) {
    for (int64_t i = 0; i < n; i++) {
        float limit = tolerance * (fabsf(want[i]) > 1 ? fabsf(want[i]) : 1);
        if (!(fabsf(got[i] - want[i]) <= limit) && !(isnan(got[i]) && isnan(want[i])) && got[i] != want[i]) {
            fail(what, n, i, got[i], want[i]);
            return;
        }
    }
}

static void check_pointwise(int64_t n) {
    const float *x = random_floats(n), *up = random_floats(n);
    for (int f = 0; f < CYG_ACTIVATIONS; f++) {
        float *got = floats(n), *want = floats(n);
        table->activate((enum cyg_activation)f, x, n, got);
        scalar->activate((enum cyg_activation)f, x, n, want);
        same("activate", got, want, n, 1e-6f);
        table->gate((enum cyg_activation)f, x, n, up, n, 1, n, got, n);
        scalar->gate((enum cyg_activation)f, x, n, up, n, 1, n, want, n);
        same("gate", got, want, n, 1e-6f);
    }
    float *a = copy_of(x, n), *b = copy_of(x, n);
    table->axpy(n, 0.7f, up, a);
    scalar->axpy(n, 0.7f, up, b);
    same("axpy", a, b, n, 1e-6f);
    table->multiply(n, up, a);
    scalar->multiply(n, up, b);
    same("multiply", a, b, n, 1e-6f);
    table->softcap(n, 2.0f, a);
    scalar->softcap(n, 2.0f, b);
    same("softcap", a, b, n, 1e-6f);
    if (table->argmax(n, x) != scalar->argmax(n, x)) fail("argmax", n, 0, (double)table->argmax(n, x), (double)scalar->argmax(n, x));
    release();
}

static void check_rows(int64_t d) {
    enum { M = 3 };
    const float *x = random_floats(M * d), *weight = random_floats(d), *bias = random_floats(d);
    float *a = floats(M * d), *b = floats(M * d);
    uint8_t *mask = array_of((size_t)(M * d));
    for (int64_t i = 0; i < M * d; i++) mask[i] = random_float() > 0;
    table->layer_norm(x, d, M, d, weight, bias, 1e-5f, a, d);
    scalar->layer_norm(x, d, M, d, weight, bias, 1e-5f, b, d);
    same("layer_norm", a, b, M * d, 3e-6f);
    table->rms_norm(x, d, M, d, weight, 1e-5f, a, d);
    scalar->rms_norm(x, d, M, d, weight, 1e-5f, b, d);
    same("rms_norm", a, b, M * d, 3e-6f);
    table->softmax(a, d, mask, d, M, d);
    scalar->softmax(b, d, mask, d, M, d);
    same("softmax", a, b, M * d, 3e-6f);
    table->log_softmax(a, d, M, d);
    scalar->log_softmax(b, d, M, d);
    same("log_softmax", a, b, M * d, 3e-6f);
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        table->rotate(a, M, d, d / 2, interleaved, weight, bias);
        scalar->rotate(b, M, d, d / 2, interleaved, weight, bias);
    }
    same("rotate", a, b, M * d, 3e-5f);
    release();
}

/* Every bit pattern of the narrow types, and rounding of values between them. */
static void check_conversions(void) {
    enum { ALL = 65536 };
    uint16_t *bits = array_of(ALL * 2), *got = array_of(ALL * 2), *want = array_of(ALL * 2);
    float *a = floats(ALL), *b = floats(ALL);
    for (int i = 0; i < ALL; i++) bits[i] = (uint16_t)i;
    for (int half = 0; half < 2; half++) {
        (half ? table->f16_to_f32 : table->bf16_to_f32)(bits, ALL, a);
        (half ? scalar->f16_to_f32 : scalar->bf16_to_f32)(bits, ALL, b);
        same(half ? "f16_to_f32" : "bf16_to_f32", a, b, ALL, 0);
        for (int i = 0; i < ALL; i++) a[i] = b[i] * (1 + 0.0004f * random_float());
        (half ? table->f32_to_f16 : table->f32_to_bf16)(a, ALL, got);
        (half ? scalar->f32_to_f16 : scalar->f32_to_bf16)(a, ALL, want);
        for (int i = 0; i < ALL; i++)
            if (got[i] != want[i] && !isnan(a[i])) fail(half ? "f32_to_f16" : "f32_to_bf16", ALL, i, got[i], want[i]);
    }
    release();
}

struct inputs {
    int64_t tokens, keys, dim;
    int heads, causal;
    int64_t window;
    float softcap;
    enum cyg_kv_kind kind;
    const float *q, *k, *v, *bias, *relative;
};

static void attend(const struct cyg_kernels *t, const struct inputs *in, int64_t token, int64_t tokens, float *out) {
    size_t size = in->kind == CYG_KV_F32 ? 4 : 2, part = (size_t)(CYG_KEY_BLOCK * in->dim) * size;
    int64_t count = (in->keys + CYG_KEY_BLOCK - 1) / CYG_KEY_BLOCK;
    const void *blocks[32];
    for (int64_t j = 0; j < count; j++) {
        char *block = memset(array_of(2 * part), 0xff, 2 * part); /* slots without a key are NaN */
        for (int64_t key = j * CYG_KEY_BLOCK; key < in->keys && key < (j + 1) * CYG_KEY_BLOCK; key++)
            t->store_kv(in->kind, in->k + key * in->dim, in->v + key * in->dim, (int)in->dim, (int)(key % CYG_KEY_BLOCK), block, block + part);
        blocks[j] = block;
    }
    int64_t row = in->heads * in->dim;
    struct cyg_attention share = {
        .kv_kind = in->kind, .blocks = blocks, .v_offset = CYG_KEY_BLOCK * in->dim, .keys = in->keys, .first_query = in->keys - in->tokens + token,
        .tokens = tokens, .heads = in->heads, .head_dim = (int)in->dim, .q = in->q + token * row, .q_token_stride = row, .q_head_stride = in->dim,
        .out = out, .out_token_stride = row, .out_head_stride = in->dim, .scale = 0.5f, .softcap = in->softcap, .causal = in->causal,
        .window = in->window, .bias = in->bias + token * in->keys, .bias_head_stride = in->tokens * in->keys, .bias_token_stride = in->keys,
        .relative = in->relative + in->keys, .relative_stride = 2 * in->keys,
        .parts = floats(CYG_ATTENTION_ROWS * in->dim),
    };
    t->attention(&share);
}

static void check_attention(int64_t tokens, int heads, int64_t dim, int64_t keys, int variant) {
    int64_t n = tokens * heads * dim;
    struct inputs in = {
        .tokens = tokens, .keys = keys, .dim = dim, .heads = heads, .causal = variant & 1, .window = variant & 2 ? 20 : 0,
        .softcap = variant & 4 ? 5.0f : 0, .kind = variant & 8 ? CYG_KV_F16 : CYG_KV_F32, .q = random_floats(n), .k = random_floats(keys * dim),
        .v = random_floats(keys * dim), .bias = random_floats(heads * tokens * keys), .relative = random_floats(heads * 2 * keys),
    };
    float *got = floats(n), *want = floats(n), *alone = floats(heads * dim);
    attend(table, &in, 0, tokens, got);
    attend(scalar, &in, 0, tokens, want);
    same("attention", got, want, n, 3e-5f);
    attend(table, &in, tokens - 1, 1, alone);
    same("attention of one token", alone, got + (tokens - 1) * heads * dim, heads * dim, 0);
    release();
}

/* Codes, scales and sums of activations are the same to the bit. */
static void check_quantize(enum cyg_basis basis, int64_t m, int64_t k) {
    int64_t groups = (k + CYG_GROUP - 1) / CYG_GROUP;
    float *x = random_floats(m * k), *scale[2];
    int8_t *q[2];
    int32_t *sum[2];
    x[0] = m > 2 ? NAN : x[0];
    memset(x + (m - 1) * k, 0, (size_t)(m > 1 ? k : 0) * sizeof *x);
    for (int which = 0; which < 2; which++) {
        q[which] = array_of((size_t)(m * groups * CYG_GROUP));
        scale[which] = floats(m * groups);
        sum[which] = array_of((size_t)(m * groups) * sizeof(int32_t));
        (which ? scalar : table)->quantize_rows(basis, x, k, m, k, q[which], scale[which], sum[which]);
    }
    same("scales of rows", scale[0], scale[1], m * groups, 0);
    for (int64_t i = 0; i < m * groups * CYG_GROUP; i++)
        if (q[0][i] != q[1][i]) fail("codes of rows", k, i, q[0][i], q[1][i]);
    for (int64_t i = 0; i < m * groups; i++)
        if (sum[0][i] != sum[1][i]) fail("sums of rows", k, i, sum[0][i], sum[1][i]);
    release();
}

/* Both tables multiply the same codes, so that only the order of the float32 sums differs. */
static void check_product(enum cyg_weight_kind kind, int64_t m, int64_t n, int64_t k) {
    int64_t groups = (k + CYG_GROUP - 1) / CYG_GROUP, padded = groups * CYG_GROUP;
    const float *w = random_floats(n * k), *x = random_floats(m * k), *bias = random_floats(n);
    uint8_t *codes = array_of((size_t)(n * k));
    float *scales = floats(n * groups), *minima = floats(n * groups), *q_scale = floats(m * groups), *y[2], *last[2];
    int8_t *q = array_of((size_t)(m * padded));
    int32_t *q_sum = array_of((size_t)(m * groups) * sizeof(int32_t));
    int whole = kind >= CYG_I8;
    if (whole) {
        scalar->quantize_weights(kind, w, k, n, k, codes, scales, kind == CYG_I4M ? minima : NULL);
        table->quantize_rows(kind == CYG_I8H ? CYG_HADAMARD : CYG_CODES, x, k, m, k, q, q_scale, q_sum);
    }
    for (int which = 0; which < 2; which++) {
        const struct cyg_kernels *t = which ? scalar : table;
        int64_t panels = (n + t->nr - 1) / t->nr;
        size_t size = t->panel_bytes(kind, k);
        char *packed = array_of((size_t)panels * size);
        for (int64_t p = 0; p < panels; p++) {
            int64_t row = p * t->nr, rows = n - row < t->nr ? n - row : t->nr;
            char *panel = packed + (size_t)p * size;
            if (whole) t->pack_codes(kind, codes + row * k, scales + row * groups, kind == CYG_I4M ? minima + row * groups : NULL, rows, k, panel);
            else t->pack_float(kind, w + row * k, k, rows, k, panel);
        }
        y[which] = floats(m * n);
        struct cyg_product share = {
            .weight = packed, .n = n, .k = k, .last_panel = panels, .m = m, .x = x, .ldx = k, .q = q, .q_scale = q_scale, .q_sum = q_sum, .bias = bias,
            .alpha = 0.5f, .y = y[which], .ldy = n,
        };
        t->product[kind](&share);
        last[which] = floats(k);
        t->unpack_row(kind, packed, k, n - 1, last[which]);
    }
    same("product", y[0], y[1], m * n, 2e-5f);
    same("unpack_row", last[0], last[1], k, 0);
    release();
}

static void check_table(void) {
    int64_t w = table->width, sizes[] = {0, 1, w - 1, w, w + 1, 2 * w, 4 * w - 1, 4 * w + 1, 517};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_pointwise(sizes[i]);
        check_rows(sizes[i]);
    }
    check_conversions();
    for (int variant = 0; variant < 16; variant++) {
        check_attention(1, 1, 5, 1, variant);
        check_attention(5, 3, 16, 33, variant);
        check_attention(37, 1, 70, 100, variant);
        check_attention(5, 2, 20, 2 * CYG_KEY_CHUNK + 50, variant);
    }
    for (int64_t k = 1; k < 400; k += 33)
        for (int64_t m = 1; m < 4; m++) {
            check_quantize(CYG_CODES, m, k);
            check_quantize(CYG_HADAMARD, m, k);
        }
    for (int kind = 0; kind < CYG_WEIGHT_KINDS; kind++)
        for (int64_t m = 1; m < 8; m += 3) {
            check_product((enum cyg_weight_kind)kind, m, 1, 32);
            check_product((enum cyg_weight_kind)kind, m, 2 * table->nr + 3, 70);
            check_product((enum cyg_weight_kind)kind, m, table->nr, 257);
        }
}

int main(void) {
    int different = 0;
    scalar = cyg_isa_table("scalar");
    for (const char *const *name = cyg_isa_names(); *name; name++) {
        table = cyg_isa_table(*name);
        if (!table) {
            printf("%s: cannot run here\n", *name);
            continue;
        }
        failures = 0;
        check_table();
        printf("%s: %s\n", *name, failures ? "DIFFERS" : "ok");
        different += failures > 0;
    }
    return different;
}
