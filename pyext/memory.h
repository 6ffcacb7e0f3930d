/* Aligned memory for weights, key/value blocks and workspaces; large pieces ask for huge pages. */
#ifndef CYG_MEMORY_H
#define CYG_MEMORY_H

#include <stdlib.h>

#if defined(_WIN32)
#include <malloc.h>
#elif defined(__linux__)
#include <sys/mman.h>
#endif

enum { MEMORY_HUGE = 2 << 20 };

static void *memory_take(size_t bytes) {
    size_t alignment = bytes >= 4 * (size_t)MEMORY_HUGE ? MEMORY_HUGE : 64;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    if (!bytes) bytes = alignment;
#if defined(_WIN32)
    return _aligned_malloc(bytes, alignment);
#else
    void *p = NULL;
    if (posix_memalign(&p, alignment, bytes)) return NULL;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (alignment == MEMORY_HUGE) madvise(p, bytes, MADV_HUGEPAGE);
#endif
    return p;
#endif
}

static void memory_give(void *p) {
#if defined(_WIN32)
    _aligned_free(p);
#else
    free(p);
#endif
}

#endif
