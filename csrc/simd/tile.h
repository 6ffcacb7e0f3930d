/* What the product bodies share beside the vectors: loops over register tiles that must vanish, and prefetching. A dot_<isa>.h header includes
   this one and sets the shape of the tiles and the integer dot products:

     NR                  rows of W in a panel, NV vectors
     F32_ROWS, INT_ROWS  rows of x in the largest tile; F32_TILES(X), INT_TILES(X) list 1..that
     F32_DEPTH           steps of k, and INT_DEPTH groups, in the block of a panel that stays in the first-level cache
     F32_SIDE(rows)      panels side by side when there are few rows, at most F32_WIDE
     DOT_FLIP            what eight-bit codes are xor-ed with in a panel
     DOT_ORIGIN          what sums of a group start from where that saves their conversion to float, else 0
     DOT_STEPS           UNROLL where the steps of a group should be unrolled

     dot_codes_of(q)         four activation codes, for every lane
     dot8_load(w)            four eight-bit weights a lane; dot4_load(w, &low, &high): two times four four-bit weights a lane
     dot8_start, dot4_start  the sum of a group before its first step; dot8_step, dot4_step: four more products a lane
     dot8_end, dot4_end      the exact sum as float, DOT_ORIGIN added
     dot_store_codes(q, v)   VF whole numbers as int8

   An integer sum of a group is sum(q * w) for eight bits and sum(q * w) + offset for four; the start takes the sum of q, or the offset, and the end
   takes the offset again, because instruction sets differ in where adding it is free. */
#ifndef CYG_TILE_H
#define CYG_TILE_H

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 64")
#else
#define UNROLL
#endif

#ifdef __GNUC__
#define PREFETCH(p) __builtin_prefetch(p)
#define PREFETCH_WRITE(p) __builtin_prefetch(p, 1)
/* Compilers regroup the integer sums of a whole tile until they no longer fit the registers; this keeps the steps in the order written. */
#define IN_ORDER(sum) __asm__ volatile("" : "+v"(sum))
#elif defined(_M_X64)
#define PREFETCH(p) _mm_prefetch((const char *)(p), _MM_HINT_T0)
#define PREFETCH_WRITE(p) PREFETCH(p)
#else
#define PREFETCH(p) ((void)0)
#define PREFETCH_WRITE(p) ((void)0)
#endif

#ifndef IN_ORDER
#define IN_ORDER(sum) ((void)0)
#endif

#define PREFETCH_AHEAD 4096 /* bytes */
#define FEW_ROWS 4          /* up to here products are bound by reading weights */
#define NV (NR / VF)

#define TILES_2(X) X(1) X(2)
#define TILES_4(X) TILES_2(X) X(3) X(4)
#define TILES_6(X) TILES_4(X) X(5) X(6)
#define TILES_8(X) TILES_6(X) X(7) X(8)
#define TILES_14(X) TILES_8(X) X(9) X(10) X(11) X(12) X(13) X(14)

#endif
