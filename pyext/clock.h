/* A monotonic clock for the stage timers. */
#ifndef CYG_CLOCK_H
#define CYG_CLOCK_H

#include <stdint.h>

#if defined(_WIN32)
#include <windows.h>
static int64_t clock_nanoseconds(void) {
    LARGE_INTEGER now, rate;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&rate);
    return (int64_t)((double)now.QuadPart * 1e9 / (double)rate.QuadPart);
}
#else
#include <time.h>
static int64_t clock_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
#endif

#endif
