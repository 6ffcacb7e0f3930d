/* A team of threads that works through the stages of a job.

   A stage is a number of units (rows, shares); members claim them from its counter, and the stage is over when all units are done, not when all members have
   come: a member that lost its core to a neighbour holds nothing up unless it holds a claimed share, and when it is back it finds every stage that went on
   without it exhausted. Waits spin briefly and then sleep, which leaves the core to the member that lost its own; the time to spin adapts: a wait so long
   that a member must have lost its core makes it short, every other one a little longer again. */
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
    TEAM_STAGES = 1 << 14,  /* of one job at most */
    TEAM_SPINS_MOST = 1500, /* pauses: 20 to 80 microseconds, depending on the processor */
    TEAM_SPINS_LEAST = 20,
    TEAM_SPINS_STEP = 1,
    TEAM_IDLE_SPIN = 1000000, /* nanoseconds: the next pass of a loop comes sooner, and a core that fell asleep may take a good part of a short pass to wake */
    TEAM_LOST_CORE = 300000 /* nanoseconds asleep: no share takes that long in a pass of few rows */
};

#define TEAM_CLOSED (1ull << 31)

typedef void (*team_job)(void *argument, int thread);
typedef atomic_int team_counter; /* see team_last */

/* One stage of the current job. */
struct team_stage {
    _Alignas(64) atomic_llong next; /* the next unclaimed unit */
    atomic_llong done;              /* units that are finished */
    atomic_int verdict;             /* whether the job stops here: 0 undecided, 1 no, 2 yes; the same to every member */
};

/* Where a member is. */
struct team_member {
    _Alignas(64) int stage;
    int64_t pending; /* units claimed and not yet counted as done */
    _Alignas(64) atomic_ullong part; /* (stage + 1) << 32 | units claimed of the member's own part of that stage */
};

struct team {
    /* Each on a cache line of its own: they are written by all members. */
    _Alignas(64) atomic_uint generation; /* (number of the job << 8) | members wanted; what idle workers wait on */
    atomic_int idle_sleepers;
    _Alignas(64) atomic_uint completed; /* stages that are over; what members wait on */
    atomic_int sleepers;
    _Alignas(64) atomic_ullong inside; /* (number of the job << 32) | closed | workers that are in it */
    atomic_uint left;                  /* counts workers that leave; what the caller waits on */
    atomic_int left_sleepers;
    _Alignas(64) atomic_int spins;     /* how long waits spin now */
    _Alignas(64) team_job job;
    void *argument;
    const volatile int *cancel; /* may become nonzero at any time; NULL: never */
    int stopped;
    int size;
    struct team_stage *stages;
    struct team_member members[256];
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

static int team_adapt(int spins, int64_t away) {
    if (away > TEAM_LOST_CORE) return TEAM_SPINS_LEAST;
    return spins < TEAM_SPINS_MOST ? spins + TEAM_SPINS_STEP : spins;
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

/* What a worker does between jobs: spins for some time, then sleeps. Returns the word once it differs from `seen`. */
static unsigned team_idle(struct team *t, unsigned seen) {
    const int64_t began = clock_nanoseconds();
    int64_t away;
    unsigned now;
    do {
        for (int spin = 0; spin < 64; spin++) {
            if ((now = atomic_load_explicit(&t->generation, memory_order_acquire)) != seen) return now;
            TEAM_PAUSE();
        }
    } while (clock_nanoseconds() - began < TEAM_IDLE_SPIN);
    return team_await(&t->generation, seen, &t->idle_sleepers, 0, &away);
}

static void team_credit(struct team *t, struct team_member *me, int64_t total) {
    if (!me->pending) return;
    /* Release: whoever sees the stage completed sees what was written in it. The member that adds the last units completes it. */
    int64_t done = atomic_fetch_add_explicit(&t->stages[me->stage].done, me->pending, memory_order_acq_rel) + me->pending;
    me->pending = 0;
    if (done == total) {
        atomic_store(&t->completed, (unsigned)me->stage + 1);
        if (atomic_load(&t->sleepers)) team_wake(&t->completed);
    }
}

/* The first of `count` units of the member's stage that are now its own; those it claimed before count as done. A stage of `total` units has no more when
   the result is not below `total`. */
static int64_t team_claim(struct team *t, int thread, int64_t count, int64_t total) {
    struct team_member *me = &t->members[thread];
    struct team_stage *stage = &t->stages[me->stage];
    team_credit(t, me, total);
    if (atomic_load_explicit(&stage->next, memory_order_relaxed) >= total) return total;
    int64_t first = atomic_fetch_add_explicit(&stage->next, count, memory_order_relaxed);
    if (first < total) me->pending = count < total - first ? count : total - first;
    return first;
}

/* Like team_claim for one unit, for units that lie one behind the other in memory: every member walks through a part of its own, so that what it will read
   next is what the processor and the kernels prefetch, and then helps with what is left of the others'. */
static int64_t team_claim_near(struct team *t, int thread, int64_t total) {
    struct team_member *me = &t->members[thread];
    const unsigned long long stage = (unsigned long long)me->stage + 1;
    team_credit(t, me, total);
    for (int i = 0; i < t->size; i++) {
        const int owner = (thread + i) % t->size;
        const int64_t first = total * owner / t->size, units = total * (owner + 1) / t->size - first;
        atomic_ullong *part = &t->members[owner].part;
        unsigned long long now = atomic_load_explicit(part, memory_order_relaxed);
        for (;;) {
            if (now >> 32 > stage) return total; /* the stage is over */
            const int64_t taken = now >> 32 == stage ? (int64_t)(now & 0xffffffff) : 0;
            if (taken >= units) break;
            if (atomic_compare_exchange_weak_explicit(part, &now, stage << 32 | (unsigned long long)(taken + 1), memory_order_relaxed, memory_order_relaxed)) {
                me->pending = 1;
                return first + taken;
            }
        }
    }
    return total;
}

/* Ends the member's stage of `total` units, all of them claimed by now: returns when all are done. */
static void team_finish(struct team *t, int thread, int64_t total) {
    struct team_member *me = &t->members[thread];
    unsigned completed;
    int64_t away;
    team_credit(t, me, total);
    while (total && (completed = atomic_load_explicit(&t->completed, memory_order_acquire)) <= (unsigned)me->stage) {
        int spins = atomic_load_explicit(&t->spins, memory_order_relaxed);
        team_await(&t->completed, completed, &t->sleepers, spins, &away);
        atomic_store_explicit(&t->spins, team_adapt(spins, away), memory_order_relaxed);
    }
    me->stage++;
}

/* Counts one of `total` pieces of work as done. True for the member that did the last one, which sees what the others wrote; the counter is then zero again. */
static int team_last(team_counter *counter, int total) {
    if (atomic_fetch_add_explicit(counter, 1, memory_order_acq_rel) + 1 != total) return 0;
    atomic_store_explicit(counter, 0, memory_order_relaxed);
    return 1;
}

/* A stage that is over when every member has come. */
static void team_meet(struct team *t, int thread) {
    t->members[thread].pending = 1;
    team_finish(t, thread, t->size);
}

/* Whether the member's stage went on without it: then nothing it could prepare for that stage is needed. */
static int team_behind(struct team *t, int thread) {
    return atomic_load_explicit(&t->completed, memory_order_acquire) > (unsigned)t->members[thread].stage;
}

/* Whether the job shall end before the member's stage: decided by the first to ask, the same to every member. */
static int team_stopped(struct team *t, int thread) {
    atomic_int *verdict = &t->stages[t->members[thread].stage].verdict;
    int known = atomic_load(verdict), decided = t->cancel && *t->cancel ? 2 : 1;
    if (!known && atomic_compare_exchange_strong(verdict, &known, decided)) known = decided;
    if (known == 2 && thread == 0) t->stopped = 1;
    return known == 2;
}

/* Hands a job to `size` - 1 workers, does the caller's part and waits for those that are in it. Returns whether it was stopped. */
static int team_run(struct team *t, team_job job, void *argument, int size, const volatile int *cancel) {
    unsigned number = (atomic_load_explicit(&t->generation, memory_order_relaxed) >> 8) + 1;
    int64_t away;
    memset(t->stages, 0, (size_t)(t->members[0].stage + 1) * sizeof *t->stages);
    t->members[0].stage = 0;
    t->members[0].pending = 0;
    t->job = job;
    t->argument = argument;
    t->cancel = cancel;
    t->stopped = 0;
    t->size = size;
    for (int i = 0; i < size; i++) atomic_store_explicit(&t->members[i].part, 0, memory_order_relaxed);
    atomic_store(&t->completed, 0);
    atomic_store(&t->inside, (unsigned long long)(number & 0xffffff) << 32);
    if (size > 1) {
        atomic_store(&t->generation, number << 8 | (unsigned)size);
        if (atomic_load(&t->idle_sleepers)) team_wake(&t->generation);
    }
    job(argument, 0);
    atomic_fetch_or(&t->inside, TEAM_CLOSED);
    for (;;) {
        unsigned left = atomic_load(&t->left);
        if (!(atomic_load(&t->inside) & (TEAM_CLOSED - 1))) break;
        team_await(&t->left, left, &t->left_sleepers, TEAM_SPINS_MOST, &away);
    }
    return t->stopped;
}

/* Whether a worker gets into the job of that number: not once the caller has closed it. */
static int team_enter(struct team *t, unsigned number) {
    unsigned long long now = atomic_load(&t->inside);
    while (now >> 32 == number && !(now & TEAM_CLOSED))
        if (atomic_compare_exchange_weak(&t->inside, &now, now + 1)) return 1;
    return 0;
}

/* A worker's life; a generation that wants no member ends it. */
static void team_serve(struct team *t, int thread) {
    unsigned seen = 0;
    for (;;) {
        seen = team_idle(t, seen);
        unsigned size = seen & 255;
        if (!size) return;
        if ((unsigned)thread >= size || !team_enter(t, seen >> 8)) continue;
        t->members[thread].stage = 0;
        t->members[thread].pending = 0;
        t->job(t->argument, thread);
        atomic_fetch_sub(&t->inside, 1);
        atomic_fetch_add(&t->left, 1);
        if (atomic_load(&t->left_sleepers)) team_wake(&t->left);
    }
}

static void team_dismiss(struct team *t) {
    atomic_store(&t->generation, ((atomic_load(&t->generation) >> 8) + 1) << 8);
    team_wake(&t->generation);
}

static void team_init(struct team *t, struct team_stage *stages) {
    memset(t, 0, sizeof *t);
    t->stages = stages;
    t->size = 1;
    atomic_store(&t->spins, TEAM_SPINS_MOST);
}

#endif
