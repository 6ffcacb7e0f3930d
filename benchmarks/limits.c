/* What one core of this machine can do at best, or several together, measured now: multiply-adds of each instruction set, reads from memory. One line a
   limit: name, 1e9 a second.
   cc -O2 -march=native -fopenmp limits.c -o limits && ./limits [threads] */
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int threads = 1;

/* The best round of all threads together; `once` returns the rate of its caller, in processor time, so that a busy machine disturbs it little. */
static void measure(const char *name, int rounds, double (*once)(int thread)) {
    double best = 0;
    for (int round = 0; round < rounds; round++) {
        double sum = 0;
        #pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(+ : sum)
        for (int thread = 0; thread < threads; thread++) sum += once(thread);
        best = sum > best ? sum : best;
    }
    printf("%s %.1f\n", name, best);
}

/* Twelve independent chains, opaque to the compiler, which would otherwise compute equal ones once. */
#define CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define LIMIT(name, type, start, operations, expression)        \
    static double name(int thread) {                            \
        type a = start, b = start;                              \
        CHAINS(DECLARE_##type)                                  \
        double begin = now();                                   \
        for (long i = 0; i < 200000; i++) {                     \
            __asm__ volatile("" : "+v"(a), "+v"(b));            \
            expression                                          \
        }                                                       \
        double rate = 200000.0 * 12 * (operations) / (now() - begin) / 1e9; \
        CHAINS(KEEP)                                            \
        (void)thread;                                           \
        return rate;                                            \
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
#ifdef __AVXVNNI__
#define STEP(i) r##i = _mm256_dpbusd_avx_epi32(r##i, a, b);
LIMIT(int_avx2vnni, __m256i, _mm256_set1_epi8(1), 64, CHAINS(STEP))
#undef STEP
#endif
#ifdef __AVX512VNNI__
#define STEP(i) r##i = _mm512_dpbusd_epi32(r##i, a, b);
LIMIT(int_avx512vnni, __m512i, _mm512_set1_epi8(1), 128, CHAINS(STEP))
#undef STEP
#endif

static const size_t words = (size_t)64 << 20;
static uint64_t *data;

/* The thread's share of the data: every line is touched, the caches fetch whole ones. */
static double memory(int thread) {
    const size_t share = words / (size_t)threads / 32 * 32;
    const uint64_t *own = data + share * (size_t)thread;
    uint64_t a = 0, b = 0, c = 0, d = 0;
    double begin = now();
    for (size_t i = 0; i < share; i += 32) {
        a += own[i];
        b += own[i + 8];
        c += own[i + 16];
        d += own[i + 24];
    }
    a += b + c + d;
    __asm__ volatile("" ::"r"(a));
    return (double)(share * sizeof *data) / (now() - begin) / 1e9;
}

int main(int argc, char **argv) {
    if (argc > 1) threads = atoi(argv[1]);
#ifdef __AVX2__
    measure("float_avx2", 40, float_avx2);
    measure("int_avx2", 40, int_avx2);
#endif
#ifdef __AVX512BW__
    measure("float_avx512", 40, float_avx512);
    measure("int_avx512", 40, int_avx512);
#endif
#ifdef __AVXVNNI__
    measure("int_avx2vnni", 40, int_avx2vnni);
#endif
#ifdef __AVX512VNNI__
    measure("int_avx512vnni", 40, int_avx512vnni);
#endif
    data = malloc(words * sizeof *data);
    memset(data, 1, words * sizeof *data);
    measure("memory", 60, memory);
    free(data);
    return 0;
}
