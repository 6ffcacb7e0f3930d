#define CYG_ISA scalar
#include "simd/vec_scalar.h"
#include "simd/dot_scalar.h"

#include "simd/table.inl.c"
