#define CYG_ISA avx2vnni
#include "simd/vec_avx2.h"
#include "simd/dot_avx2vnni.h"

#include "simd/table.inl.c"
