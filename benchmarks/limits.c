/* What one core of this machine can do at best, measured now: multiply-adds of each instruction set, reads from memory. One line a limit: name, 1e9 a
   second.
   cc -O2 -march=native limits.c -o limits && ./limits */
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Twelve independent chains, opaque to the compiler, which would otherwise compute equal ones once. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define LIMIT(name, type, start, operations, expression)                            \
    static void name(void) {                                                        \
        double best = 0;                                                            \
        type a = start, b = start;                                                  \
        CHAINS(DECLARE_##type)                                                      \
        for (int round = 0; round < 40; round++) {                                  \
            double begin = now();                                                   \
            for (long i = 0; i < 200000; i++) {                                     \
                __asm__ volatile("" : "+v"(a), "+v"(b));                            \
                expression                                                          \
            }                                                                       \
            double rate = 200000.0 * 12 * (operations) / (now() - begin) / 1e9;     \
            best = rate > best ? rate : best;                                       \
        }                                                                           \
        CHAINS(KEEP)                                                                \
        printf("%s %.1f\n", #name, best);                                           \
    }
#define KEEP(i) __asm__ volatile("" ::"v"(r##i));
#define DECLARE(type, i) type r##i = b; __asm__ volatile("" : "+v"(r##i));
#define DECLARE___m256(i) DECLARE(__m256, i)
#define DECLARE___m256i(i) DECLARE(__m256i, i)
#define DECLARE___m512(i) DECLARE(__m512, i)
#define DECLARE___m512i(i) DECLARE(__m512i, i)

#ifdef __AVX2__
#include <immintrin.h>
#define STEP(i) r##i = _mm256_fmadd_ps(a, b, r##i);
LIMIT(float_avx2, __m256, _mm256_set1_ps(1e-3f), 16, CHAINS(STEP))
#undef STEP
#define STEP(i)                                  \
    {                                            \
        __m256i q = _mm256_maddubs_epi16(a, b);  \
        __asm__ volatile("" : "+v"(q));          \
        r##i = _mm256_add_epi32(r##i, _mm256_madd_epi16(q, b)); \
    }
LIMIT(int_avx2, __m256i, _mm256_set1_epi8(1), 64, CHAINS(STEP))
#undef STEP
#endif
#ifdef __AVX512BW__
#define STEP(i) r##i = _mm512_fmadd_ps(a, b, r##i);
LIMIT(float_avx512, __m512, _mm512_set1_ps(1e-3f), 32, CHAINS(STEP))
#undef STEP
#define STEP(i)                                  \
    {                                            \
        __m512i q = _mm512_maddubs_epi16(a, b);  \
        __asm__ volatile("" : "+v"(q));          \
        r##i = _mm512_add_epi32(r##i, _mm512_madd_epi16(q, b)); \
    }
LIMIT(int_avx512, __m512i, _mm512_set1_epi8(1), 128, CHAINS(STEP))
#undef STEP
#endif
#ifdef __AVX512VNNI__
#define STEP(i) r##i = _mm512_dpbusd_epi32(r##i, a, b);
LIMIT(int_avx512vnni, __m512i, _mm512_set1_epi8(1), 128, CHAINS(STEP))
#undef STEP
#endif

static void memory(void) {
    const size_t words = (size_t)64 << 20;
    uint64_t *data = malloc(words * sizeof *data), sum = 0;
    memset(data, 1, words * sizeof *data);
    double best = 0;
    for (int round = 0; round < 5; round++) {
        double begin = now();
        uint64_t a = 0, b = 0, c = 0, d = 0;
        for (size_t i = 0; i < words; i += 32) { /* every line is touched: the caches fetch whole ones */
            a += data[i];
            b += data[i + 8];
            c += data[i + 16];
            d += data[i + 24];
        }
        sum += a + b + c + d;
        double rate = (double)(words * sizeof *data) / (now() - begin) / 1e9;
        best = rate > best ? rate : best;
    }
    __asm__ volatile("" ::"r"(sum));
    printf("memory %.1f\n", best);
    free(data);
}

int main(void) {
#ifdef __AVX2__
    float_avx2();
    int_avx2();
#endif
#ifdef __AVX512BW__
    float_avx512();
    int_avx512();
#endif
#ifdef __AVX512VNNI__
    int_avx512vnni();
#endif
    memory();
    return 0;
}
