#define CYG_ISA avx512
#include "simd/vec_avx512.h"
#include "simd/dot_avx512.h"

#include "simd/table.inl.c"
