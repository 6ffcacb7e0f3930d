"""Checks that AVX instructions stay in the kernel tables made for them: nothing else may run before the CPU has been asked.

    python tools/check_isa_objects.py [compiled module ...]

Without arguments all built modules of cygnet._core are looked at. Needs objdump and readelf, and modules that were not stripped.
"""

import re
import subprocess
import sys
from bisect import bisect_right
from pathlib import Path

ALLOWED = re.compile(r"isa_avx\w+\.c")
# AVX and AVX-512 mnemonics start with v (verr and verw are older), mask-register ones with k.
VECTOR = re.compile(r"^\s*([0-9a-f]+):\s+(?:\{\w+\}\s+)?((?!verr|verw)v[a-z]\w*|k[a-z]+[bwdq])\b")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def functions(module):
    """(address, source file) of every function, ascending; local symbols follow the entry of their file, global ones have none."""
    found, source = [], ""
    for line in output_of("readelf", "-sW", module).splitlines():
        fields = line.split()
        if len(fields) < 7 or not fields[0].endswith(":") or not fields[0][:-1].isdigit():
            continue
        kind, bind = fields[3], fields[4]
        if kind == "FILE":
            source = fields[7] if len(fields) > 7 else ""
        elif kind == "FUNC" and int(fields[1], 16):
            found.append((int(fields[1], 16), source if bind == "LOCAL" else ""))
    return sorted(found)


def misplaced(module):
    """Lines of disassembly with a vector instruction outside the tables made for it."""
    known = functions(module)
    addresses = [address for address, _ in known]
    for line in output_of("objdump", "-d", "--no-show-raw-insn", module).splitlines():
        match = VECTOR.match(line)
        if match:
            place = bisect_right(addresses, int(match[1], 16)) - 1
            if place < 0 or not ALLOWED.fullmatch(known[place][1]):
                yield line.strip(), known[place][1] if place >= 0 else ""


def main(modules):
    modules = modules or sorted(map(str, (Path(__file__).parent.parent / "python/cygnet/_core").glob("*.so")))
    bad = 0
    for module in modules:
        lines = list(misplaced(module))
        bad += bool(lines)
        print(f"{Path(module).name}: {f'{len(lines)} vector instructions outside the tables' if lines else 'ok'}")
        for line, source in lines[:5]:
            print(f"    {source or '(global)'}: {line}")
    return 1 if bad or not modules else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
