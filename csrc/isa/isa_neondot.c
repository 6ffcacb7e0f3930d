#define CYG_ISA neondot
#include "simd/vec_neon.h"
#include "simd/dot_neondot.h"

#include "simd/table.inl.c"
