"""Checks a built wheel: its size, and that its extensions need nothing but the C library and the OpenMP runtime.

Usage: python tools/check_wheel.py dist/cygnet-*.whl
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LIMIT_MB = 10
ALLOWED = re.compile(r"lib(c|m|gomp|pthread|dl|rt)\.so\.\d+|ld-linux-.*\.so\.\d+|libgcc_s\.so\.1")


def main(path):
    size = Path(path).stat().st_size / 1e6
    print(f"{Path(path).name}: {size:.2f} MB")
    wrong = [f"the wheel has {size:.1f} MB, more than {LIMIT_MB}"] if size > LIMIT_MB else []
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path) as wheel:
        libraries = [name for name in wheel.namelist() if name.endswith(".so")]
        if not libraries:
            wrong.append("the wheel holds no extension")
        for name in libraries:
            listing = subprocess.run(["readelf", "-d", wheel.extract(name, folder)], capture_output=True, text=True, check=True).stdout
            needed = re.findall(r"\(NEEDED\).*\[(.+?)\]", listing)
            wrong += [f"{name} needs {library}" for library in needed if not ALLOWED.fullmatch(library)]
    print(subprocess.run([sys.executable, "-m", "auditwheel", "show", path], capture_output=True, text=True).stdout.strip())
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
