"""info(): what this installation runs with."""

from __future__ import annotations

import os
import platform


def info() -> dict:
    """Version, instruction set, threads and libraries, as plain values.

    Returns
    -------
    dict
        version, python, system; isa (the instruction set in use, "chosen", and those this build and CPU can run, "available"); threads (the
        default number, and what it comes from); blas (the library behind float32 products); openmp.

    Examples
    --------
    >>> import cygnet
    >>> sorted(cygnet.info())
    ['blas', 'isa', 'openmp', 'python', 'system', 'threads', 'version']
    """
    import cygnet
    from cygnet._core import _kernels

    return {
        "version": cygnet.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "isa": {"chosen": _kernels.isa_name(), "available": _kernels.isa_names()},
        "threads": _threads(),
        "blas": _blas(),
        "openmp": _openmp(),
    }


def _threads() -> dict:
    from cygnet.cpu_count import cgroup_quota, thread_count, usable_cores

    return {
        "default": thread_count(),
        "cores": usable_cores(),
        "quota": cgroup_quota(),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
    }


def _blas() -> str:
    """The BLAS that scipy was built with: the one behind scipy.linalg.cython_blas."""
    import scipy

    found = scipy.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return " ".join(filter(None, ("scipy", found.get("name"), found.get("version")))).strip()


def _openmp() -> str:
    """The OpenMP runtime in this process, as the system lists loaded libraries; "linked in" where it does not tell."""
    from cygnet._core import _threads  # noqa: F401  brings the runtime into the process

    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split()[-1] for line in maps if "omp" in line and ".so" in line}
    except OSError:
        paths = set()
    return ", ".join(sorted(path.rpartition("/")[2] for path in paths if "/lib" in path and "omp" in path.rpartition("/")[2])) or "linked in"
