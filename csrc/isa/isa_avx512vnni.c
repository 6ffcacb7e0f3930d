#define CYG_ISA avx512vnni
#include "simd/vec_avx512.h"
#include "simd/dot_avx512vnni.h"

#include "simd/table.inl.c"
