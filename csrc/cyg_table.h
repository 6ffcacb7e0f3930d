/* Memory of large hash tables: on huge pages where the system has them, since a random look-up in small ones mostly waits for its page. */
#ifndef CYG_TABLE_H
#define CYG_TABLE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

/* Asks the memory for what will be read soon. */
#if defined(__GNUC__) || defined(__clang__)
#define CYG_PREFETCH(p) __builtin_prefetch(p)
#else
#define CYG_PREFETCH(p) ((void)0)
#endif

#define CYG_HUGE_PAGE ((size_t)2 << 20)

/* Memory that is not zeroed, on huge pages where it is large. NULL when memory is out. Release with free(). */
static inline void *cyg_huge_alloc(size_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size >= CYG_HUGE_PAGE / 2) {
        void *memory = NULL;
        size_t rest = size % CYG_HUGE_PAGE; /* on a huge page too where it fills half of one */
        if (rest >= CYG_HUGE_PAGE / 2) size += CYG_HUGE_PAGE - rest;
        if (posix_memalign(&memory, CYG_HUGE_PAGE, size)) return NULL;
        madvise(memory, size, MADV_HUGEPAGE);
        return memory;
    }
#endif
    return malloc(size);
}

/* The same, zeroed. */
static inline void *cyg_table_alloc(size_t size)
{
    void *memory = cyg_huge_alloc(size);
    return memory ? memset(memory, 0, size) : NULL;
}

#endif
