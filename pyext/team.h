/* A team of threads: jobs handed over by a generation word, shares claimed from one counter, barriers that spin briefly and then sleep.

   A busy neighbour takes a core from one member for milliseconds at a time. Members that wait asleep leave their core to the one that lost its
   own, and small claimed shares let the others do its work; members that wait spinning would keep both cores from it. So the time to spin adapts: a wait so
   long that a member must have lost its core makes it short, every other wait a little longer again. */
#ifndef CYG_TEAM_H
#define CYG_TEAM_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "clock.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(_WIN32)
#include <windows.h>
#else
#include <unistd.h>
#endif

#if defined(__x86_64__) || defined(_M_X64) || defined(__i386__)
#include <immintrin.h>
#define TEAM_PAUSE() _mm_pause()
#elif defined(__aarch64__)
#define TEAM_PAUSE() __asm__ __volatile__("yield")
#else
#define TEAM_PAUSE() ((void)0)
#endif

enum {
    TEAM_SPINS_MOST = 1500, /* pauses: 20 to 80 microseconds, depending on the processor */
    TEAM_SPINS_LEAST = 20,
    TEAM_SPINS_STEP = 1,
    TEAM_LOST_CORE = 300000 /* nanoseconds asleep: no share takes that long in a pass of few rows */
};

typedef void (*team_job)(void *argument, int thread);

struct team {
    /* Each on a cache line of its own: they are written by all members. */
    _Alignas(64) atomic_uint generation; /* (number of the job << 8) | members wanted; what idle workers wait on */
    atomic_int idle_sleepers;
    _Alignas(64) atomic_uint phase;
    atomic_int sleepers;
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_llong next; /* the next unclaimed share of the current stage */
    _Alignas(64) atomic_int spins; /* how long waits spin now */
    _Alignas(64) team_job job;
    void *argument;
    const volatile int *cancel; /* may become nonzero at any time; NULL: never */
    int stop;                   /* the flag as all members agree on it: sampled by the last to arrive at a barrier */
    int size;
};

static void team_sleep(atomic_uint *word, unsigned seen) {
#if defined(__linux__)
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
#elif defined(_WIN32)
    (void)word; (void)seen;
    Sleep(0);
#else
    (void)word; (void)seen;
    usleep(20);
#endif
}

static void team_wake(atomic_uint *word) {
#if defined(__linux__)
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
#else
    (void)word;
#endif
}

/* Returns the word once it differs from `seen`; after so many pauses it sleeps. `away` receives the nanoseconds of that sleep, 0 without one. */
static unsigned team_await(atomic_uint *word, unsigned seen, atomic_int *sleepers, int spins, int64_t *away) {
    unsigned now;
    *away = 0;
    for (int spin = 0; spin < spins; spin++) {
        if ((now = atomic_load_explicit(word, memory_order_acquire)) != seen) return now;
        TEAM_PAUSE();
    }
    int64_t began = clock_nanoseconds();
    atomic_fetch_add(sleepers, 1);
    while ((now = atomic_load(word)) == seen) team_sleep(word, seen);
    atomic_fetch_sub(sleepers, 1);
    *away = clock_nanoseconds() - began;
    return now;
}

/* A barrier's wait, whose patience adapts. */
static void team_wait(struct team *t, unsigned phase) {
    int spins = atomic_load_explicit(&t->spins, memory_order_relaxed);
    int64_t away;
    team_await(&t->phase, phase, &t->sleepers, spins, &away);
    if (away > TEAM_LOST_CORE) {
        spins = TEAM_SPINS_LEAST;
    } else if (spins < TEAM_SPINS_MOST) {
        spins += TEAM_SPINS_STEP;
    }
    atomic_store_explicit(&t->spins, spins, memory_order_relaxed);
}

/* Every member calls it; it also takes back the claims. Returns nonzero when the work shall stop, the same to every member. */
static int team_barrier(struct team *t) {
    unsigned phase = atomic_load_explicit(&t->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) + 1 == t->size) {
        atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&t->next, 0, memory_order_relaxed);
        if (t->cancel && *t->cancel) t->stop = 1;
        atomic_store(&t->phase, phase + 1);
        if (atomic_load(&t->sleepers)) team_wake(&t->phase);
    } else {
        team_wait(t, phase);
    }
    return t->stop;
}

/* The first of `count` shares that are now the caller's; the stage is over when it is not below the number of shares. */
static int64_t team_claim(struct team *t, int64_t count) {
    return atomic_fetch_add_explicit(&t->next, count, memory_order_relaxed);
}

/* Hands a job to `size` - 1 workers, does the caller's part and waits for theirs. */
static int team_run(struct team *t, team_job job, void *argument, int size, const volatile int *cancel) {
    t->job = job;
    t->argument = argument;
    t->cancel = cancel;
    t->stop = 0;
    t->size = size;
    atomic_store_explicit(&t->next, 0, memory_order_relaxed);
    if (size > 1) {
        unsigned number = (atomic_load_explicit(&t->generation, memory_order_relaxed) >> 8) + 1;
        atomic_store(&t->generation, number << 8 | (unsigned)size);
        if (atomic_load(&t->idle_sleepers)) team_wake(&t->generation);
    }
    job(argument, 0);
    int cancelled = t->stop;
    t->cancel = NULL;
    team_barrier(t);
    return cancelled;
}

/* A worker's life; a generation that wants no member ends it. */
static void team_serve(struct team *t, int thread) {
    unsigned seen = 0;
    int64_t away;
    for (;;) {
        seen = team_await(&t->generation, seen, &t->idle_sleepers, TEAM_SPINS_MOST, &away);
        unsigned size = seen & 255;
        if (!size) return;
        if ((unsigned)thread >= size) continue;
        t->job(t->argument, thread);
        team_barrier(t);
    }
}

static void team_dismiss(struct team *t) {
    atomic_store(&t->generation, ((atomic_load(&t->generation) >> 8) + 1) << 8);
    team_wake(&t->generation);
}

static void team_init(struct team *t) {
    memset(t, 0, sizeof *t);
    t->size = 1;
    atomic_store(&t->spins, TEAM_SPINS_MOST);
}

#endif
