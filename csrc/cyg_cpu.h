/* Which tables this CPU and operating system can run, and the choice among them. */
#ifndef CYG_CPU_H
#define CYG_CPU_H

#include "cyg_kernels.h"

/* Names of the tables that were compiled in, best first, NULL-terminated. */
const char *const *cyg_isa_names(void);
/* 1 if this CPU and the operating system (saved registers included) can run the table. */
int cyg_isa_usable(const char *name);
/* The table of that name, or NULL if it was not compiled in or cannot run here. NULL as name: the best one. */
const struct cyg_kernels *cyg_isa_table(const char *name);

#endif
