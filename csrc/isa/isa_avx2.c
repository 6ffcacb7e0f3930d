#define CYG_ISA avx2
#include "simd/vec_avx2.h"
#include "simd/dot_avx2.h"

#include "simd/table.inl.c"
