/* Units of work that threads claim from one counter. */
#ifndef CYG_CLAIMS_H
#define CYG_CLAIMS_H

#include <stdatomic.h>
#include <stddef.h>

typedef struct {
    atomic_size_t next;
} cyg_claims;

static inline void cyg_claims_init(cyg_claims *c) { atomic_init(&c->next, 0); }

/* The first of `count` units that nobody else gets. */
static inline size_t cyg_claim(cyg_claims *c, size_t count) { return atomic_fetch_add_explicit(&c->next, count, memory_order_relaxed); }

#endif
