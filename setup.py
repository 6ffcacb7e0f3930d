"""Builds csrc/ into one static library an instruction set and every pyext/*.pyx into cygnet._core.

Nothing here names a single kernel or extension: a new pyext/_name.pyx or csrc/isa/isa_<name>.c is picked up by its name.
CYGNET_DEBUG=1 builds with bounds checks and without optimisation; CYGNET_SANITIZE=address,undefined adds sanitizers.
"""

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
os.chdir(ROOT)
MSVC = sys.platform == "win32"
MACHINE = platform.machine().lower()
DEBUG = os.environ.get("CYGNET_DEBUG") == "1"
SANITIZE = os.environ.get("CYGNET_SANITIZE")

X86 = MACHINE in ("x86_64", "amd64", "i686", "x86")
ARM64 = MACHINE in ("aarch64", "arm64")

# Flags an instruction set needs; the stub of the same name is compiled only where its architecture matches.
ISA_FLAGS = {
    "scalar": (True, [], []),
    "avx2": (X86, ["-mavx2", "-mfma", "-mf16c"], ["/arch:AVX2"]),
    "avx2vnni": (X86, ["-mavx2", "-mfma", "-mf16c", "-mavxvnni"], ["/arch:AVX2"]),
    "avx512": (X86, ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mf16c"], ["/arch:AVX512"]),
    "avx512vnni": (X86, ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni", "-mfma", "-mf16c"], ["/arch:AVX512"]),
    "neon": (ARM64, [], []),
    "neondot": (ARM64, ["-march=armv8.2-a+dotprod"], []),
}

if MSVC:
    common = ["/std:c11", "/experimental:c11atomics", "/Od" if DEBUG else "/O2"]
    openmp_compile, openmp_link = ["/openmp"], []
else:
    # Contraction and reassociation are spelled out in the kernels, never left to the compiler: equal bits depend on it.
    common = ["-std=gnu11", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wno-unused-function"]
    common += ["-O0", "-g"] if DEBUG else ["-O3", "-g0"]
    openmp_compile = openmp_link = ["-fopenmp"]
    if sys.platform == "darwin":
        openmp_compile, openmp_link = ["-Xpreprocessor", "-fopenmp"], ["-lomp"]
sanitize = [f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer", "-g"] if SANITIZE else []


def files(*patterns):
    return sorted(str(p) for pattern in patterns for p in Path("csrc").glob(pattern))


base_files, headers, stubs = files("*.h", "*.c"), files("*.h", "simd/*.h", "simd/*.c"), files("isa/*.c")


def library(name, sources, flags, depends):
    return name, {"sources": sources, "include_dirs": ["csrc"], "cflags": common + flags + sanitize, "obj_deps": {"": depends}}


def accepted(flags):
    """Whether the compiler knows the flags: newer instruction sets are left out of builds by older ones."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    asked = subprocess.run([*compiler, *flags, "-x", "c", "-c", os.devnull, "-o", os.devnull], capture_output=True)
    return asked.returncode == 0


libraries = [library("cyg_base", files("*.c"), [], files("*.h"))]
isa_macros = []
for stub in stubs:
    isa = Path(stub).stem.removeprefix("isa_")
    wanted, gcc_flags, msvc_flags = ISA_FLAGS[isa]
    if wanted and (MSVC or accepted(gcc_flags)):
        libraries.append(library(f"cyg_{isa}", [stub], msvc_flags if MSVC else gcc_flags, headers))
        isa_macros.append((f"CYG_HAVE_{isa.upper()}", "1"))
# The choice of the table lives in the base library and must know which tables were built.
libraries[0][1]["macros"] = isa_macros
isa_libraries = [name for name, _ in libraries[1:]]


def extension(pyx):
    name = pyx.stem
    threads = name == "_threads"
    return Extension(
        f"cygnet._core.{name}",
        [str(pyx)],
        include_dirs=["csrc", "pyext"],
        # Only _kernels links the kernel tables; the others reach them through its .pxd.
        libraries=(["cyg_base", *isa_libraries] if name == "_kernels" else ["cyg_base"]) + ([] if MSVC else ["m"]),
        # What Cython writes is mostly calls: level 2 halves its size and its compile time.
        extra_compile_args=common + ([] if MSVC or DEBUG else ["-O2"]) + sanitize + (openmp_compile if threads else []),
        extra_link_args=sanitize + (openmp_link if threads else []),
        # Cython follows .pxd files by itself.
        depends=(headers + stubs if name == "_kernels" else base_files) + [str(p) for p in Path("pyext").glob("*.h")],
    )


directives = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    "embedsignature": True,
    "freethreading_compatible": True,
}
extensions = cythonize(
    [extension(p) for p in sorted(Path("pyext").glob("*.pyx"))],
    compiler_directives=directives,
    include_path=["pyext"],
    build_dir="build/cython",
    nthreads=0,
)


class BuildExtensions(build_ext):
    """Builds the static libraries first, also when only the extensions are asked for."""

    def run(self):
        self.run_command("build_clib")
        super().run()


setup(
    ext_modules=extensions,
    libraries=libraries,
    cmdclass={"build_ext": BuildExtensions},
    options={"build_ext": {"parallel": min(os.cpu_count() or 1, 8)}},
)
