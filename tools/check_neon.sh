#!/bin/sh
# Compiles the kernels for AArch64 and compares the NEON table with the scalar one under user-mode emulation: about two minutes.
# Installs Debian's cross compiler and emulator where they are missing and that is allowed.
set -eu
cd "$(dirname "$0")/.."
if [ "$(uname -m)" = aarch64 ]; then
    exec sh tools/compare_tables.sh "${CC:-cc}"
fi
if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "check_neon.sh: needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user" >&2
        exit 1
    fi
    apt-get update -q >/dev/null
    apt-get install -y -q --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user >/dev/null
fi
LINK=-static RUN=qemu-aarch64 sh tools/compare_tables.sh aarch64-linux-gnu-gcc
