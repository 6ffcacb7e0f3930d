#!/bin/sh
# Compares all kernel tables of this machine with the scalar one under the address and undefined-behaviour sanitizers.
set -eu
cd "$(dirname "$0")/.."
sh tools/compare_tables.sh "${CC:-gcc}" -fsanitize=address,undefined -fno-sanitize-recover=all -O1 -g1
