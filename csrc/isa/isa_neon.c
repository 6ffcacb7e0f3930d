#define CYG_ISA neon
#include "simd/vec_neon.h"
#include "simd/dot_neon.h"

#include "simd/table.inl.c"
