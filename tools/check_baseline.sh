#!/bin/sh
# Starts cygnet on emulated x86-64 CPUs without AVX, and with AVX that no system saves: the wheel must choose the scalar table there and compute.
# Needs qemu-x86_64 (Debian qemu-user).
set -eu
cd "$(dirname "$0")/.."
python=$("${PYTHON:-python}" -c "import sys; print(sys.executable)") # the program itself, where `python` is a wrapper script
for cpu in Nehalem Haswell,-xsave; do
    PYTHONPATH=python qemu-x86_64 -cpu $cpu "$python" -c '
import sys
from cygnet._core import _kernels
from cygnet import functional
assert _kernels.isa_names() == ["scalar"], _kernels.isa_names()
assert functional.softmax([0.0, 0.0]).tolist() == [0.5, 0.5]
print(sys.argv[1] + ": ok")
' $cpu
done
