/* CPU features and the operating system's part in them: a table is usable when the CPU has its instructions and the system saves its registers.
   Compiled for the baseline, never for an instruction set of a table. */
#include "cyg_cpu.h"

#include <string.h>

#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64) || defined(_M_IX86)
#define CYG_X86 1
#ifdef _MSC_VER
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#elif defined(__linux__)
#include <sys/auxv.h>
#elif defined(_M_ARM64)
#include <windows.h>
#endif

/* Bits of the feature set below. */
enum { AVX2 = 1, AVX512 = 2, VNNI = 4, AVX2VNNI = 8, DOT = 16 };

#ifdef CYG_X86
static void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t r[4]) {
#ifdef _MSC_VER
    int v[4];
    __cpuidex(v, (int)leaf, (int)subleaf);
    for (int i = 0; i < 4; i++) r[i] = (uint32_t)v[i];
#else
    __cpuid_count(leaf, subleaf, r[0], r[1], r[2], r[3]);
#endif
}

/* Register classes that the operating system saves at a task switch: XCR0. */
static uint64_t saved_registers(void) {
#ifdef _MSC_VER
    return _xgetbv(0);
#else
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
#endif
}

static int has(uint32_t word, uint32_t bits) {
    return (word & bits) == bits;
}

static int features(void) {
    uint32_t r[4];
    cpuid(0, 0, r);
    if (r[0] < 7) return 0;
    cpuid(1, 0, r);
    const uint32_t fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    if (!has(r[2], fma | osxsave | avx | f16c)) return 0;
    uint64_t saved = saved_registers();
    if ((saved & 0x6) != 0x6) return 0; /* xmm, ymm */
    cpuid(7, 0, r);
    if (!has(r[1], 1u << 5)) return 0;
    int found = AVX2;
    uint32_t more[4] = {0};
    if (r[0] >= 1) cpuid(7, 1, more);
    if (has(more[0], 1u << 4)) found |= AVX2VNNI;
    const uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31, vnni = 1u << 11;
    if ((saved & 0xe6) == 0xe6 && has(r[1], f | dq | bw | vl)) /* mask registers, upper halves, zmm16..31 */
        found |= AVX512 | (has(r[2], vnni) ? VNNI : 0);
    return found;
}
#else
/* AArch64 has Advanced SIMD, half-precision conversion and fused multiply-add in its baseline (ARMv8.0-A); dot products came later. */
static int features(void) {
#if defined(__linux__) && defined(__aarch64__)
    return getauxval(AT_HWCAP) & 1ul << 20 ? DOT : 0; /* HWCAP_ASIMDDP */
#elif defined(__APPLE__)
    return DOT; /* every Mac with an ARM processor has them */
#elif defined(_M_ARM64)
    return IsProcessorFeaturePresent(43) ? DOT : 0; /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE */
#else
    return 0;
#endif
}
#endif

/* The tables that were compiled in, best first; setup.py defines CYG_HAVE_<ISA> for each. */
extern const struct cyg_kernels cyg_table_scalar, cyg_table_avx2, cyg_table_avx2vnni, cyg_table_avx512, cyg_table_avx512vnni, cyg_table_neon,
    cyg_table_neondot;

static const struct {
    const struct cyg_kernels *table;
    int needs;
} tables[] = {
#ifdef CYG_HAVE_AVX512VNNI
    {&cyg_table_avx512vnni, AVX2 | AVX512 | VNNI},
#endif
#ifdef CYG_HAVE_AVX512
    {&cyg_table_avx512, AVX2 | AVX512},
#endif
#ifdef CYG_HAVE_AVX2VNNI
    {&cyg_table_avx2vnni, AVX2 | AVX2VNNI},
#endif
#ifdef CYG_HAVE_AVX2
    {&cyg_table_avx2, AVX2},
#endif
#ifdef CYG_HAVE_NEONDOT
    {&cyg_table_neondot, DOT},
#endif
#ifdef CYG_HAVE_NEON
    {&cyg_table_neon, 0},
#endif
    {&cyg_table_scalar, 0},
};

enum { TABLES = sizeof tables / sizeof tables[0] };

const char *const *cyg_isa_names(void) {
    static const char *names[TABLES + 1]; /* ends in NULL; every caller writes the same values */
    for (int i = 0; i < TABLES; i++) names[i] = tables[i].table->name;
    return names;
}

const struct cyg_kernels *cyg_isa_table(const char *name) {
    static int found = -1; /* asked once, as CPUID is slow under a hypervisor; every caller writes the same value */
    if (found < 0) found = features();
    for (int i = 0; i < TABLES; i++)
        if ((found & tables[i].needs) == tables[i].needs && (!name || !strcmp(name, tables[i].table->name))) return tables[i].table;
    return NULL;
}

int cyg_isa_usable(const char *name) {
    return name && cyg_isa_table(name);
}
