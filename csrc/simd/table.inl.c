/* All kernel bodies and the table of one instruction set. A stub in isa/ has included its vector header and defined CYG_ISA, the name. */
#include "simd/vec_math.inl.h"

#define CYG_JOIN_(a, b) a##b
#define CYG_JOIN(a, b) CYG_JOIN_(a, b)
#define CYG_TEXT_(a) #a
#define CYG_TEXT(a) CYG_TEXT_(a)

const struct cyg_kernels CYG_JOIN(cyg_table_, CYG_ISA) = {
    .name = CYG_TEXT(CYG_ISA),
    .width = VF,
};
