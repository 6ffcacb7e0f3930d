#!/bin/sh
# compare_tables.sh CC [FLAGS...]: builds the kernel tables that CC's architecture has and tests/kernels/c/compare_tables.c, and runs the comparison
# (through $RUN where that is set). Run from the repository's root.
set -eu
cc=$1
shift
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-std=gnu11 -O2 -g -ffp-contract=off -fno-math-errno -Wall -Wno-unused-function -Icsrc $*"

case $($cc -dumpmachine) in
x86_64* | i?86*)
    avx2="-mavx2 -mfma -mf16c"
    avx512="$avx2 -mavx512f -mavx512bw -mavx512dq -mavx512vl"
    isas="scalar avx2 avx2vnni avx512 avx512vnni"
    ;;
*) isas="scalar neon neondot" ;;
esac
for isa in $isas; do
    case $isa in
    avx2) own=$avx2 ;;
    avx2vnni) own="$avx2 -mavxvnni" ;;
    avx512) own=$avx512 ;;
    avx512vnni) own="$avx512 -mavx512vnni" ;;
    neondot) own=-march=armv8.2-a+dotprod ;;
    *) own= ;;
    esac
    $cc $flags $own -c "csrc/isa/isa_$isa.c" -o "$out/$isa.o"
    defines="${defines-} -DCYG_HAVE_$(echo "$isa" | tr a-z A-Z)"
done
$cc $flags $defines csrc/cyg_cpu.c tests/kernels/c/compare_tables.c "$out"/*.o -lm ${LINK-} -o "$out/compare"
${RUN-} "$out/compare"
