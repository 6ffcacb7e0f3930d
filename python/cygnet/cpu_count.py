"""How many threads this process may really use: affinity, cgroup quota, physical cores, OMP_NUM_THREADS.

A container with a quota of two CPUs on a 64-core host shows 64 cores; one thread each would be throttled many times over. Formats: cgroup v2
`cpu.max` and v1 `cpu.cfs_quota_us`/`cpu.cfs_period_us` (Linux kernel documentation, cgroup-v2 and sched-bwc), `/proc/self/mountinfo` (proc(5)).
"""

from __future__ import annotations

import math
import os
from pathlib import Path, PurePosixPath

from cygnet.errors import OptionError

MAX_THREADS = 255  # of one team


def thread_count(threads: int | None = None) -> int:
    """Number of threads to run with: the argument, else OMP_NUM_THREADS, else what this process may use.

    Parameters
    ----------
    threads : int or None
        The caller's wish, from 1 to 255; it wins over everything else. What the environment asks for beyond that is cut to it.

    Raises
    ------
    OptionError
        If `threads` is not a whole number from 1 to 255.

    Examples
    --------
    >>> from cygnet.cpu_count import thread_count
    >>> thread_count(3)
    3
    """
    if threads is not None:
        if isinstance(threads, bool) or not hasattr(threads, "__index__") or not 1 <= int(threads) <= MAX_THREADS:
            raise OptionError(f"threads must be a whole number from 1 to {MAX_THREADS}, not {threads!r}")
        return int(threads)
    return min(_openmp_wish(os.environ.get("OMP_NUM_THREADS")) or usable_cores(), MAX_THREADS)


def usable_cores(root: str | Path = "/") -> int:
    """Physical cores this process is allowed on, cut to its CPU quota (rounded up); at least 1. `root` holds proc and sys."""
    allowed = _affinity()
    cores = len({_core(Path(root), cpu) for cpu in allowed})
    quota = cgroup_quota(root)
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


def cgroup_quota(root: str | Path = "/") -> float | None:
    """The least CPU quota, in CPUs, over this process's control groups and all groups above them; None where there is none."""
    root = Path(root)
    memberships = _read(root / "proc/self/cgroup") or ""
    mounts = _cgroup_mounts(_read(root / "proc/self/mountinfo") or "")
    quotas = []
    for line in memberships.splitlines():
        parts = line.split(":", 2)
        if len(parts) != 3:
            continue
        _, controllers, group = parts
        version = 2 if controllers == "" else 1
        if version == 1 and "cpu" not in controllers.split(","):
            continue
        for mount_version, mount_root, mount_point in mounts:
            if mount_version == version:
                quotas += _quotas_upwards(root, version, mount_point, _below(group, mount_root))
    return min(quotas, default=None)


def parse_cpu_max(text: str) -> float | None:
    """CPUs granted by a cgroup v2 cpu.max line; None for `max` or anything that is not a quota."""
    fields = text.split()
    return _ratio(fields[0], fields[1] if len(fields) > 1 else "100000") if fields else None


def _ratio(quota: str, period: str) -> float | None:
    try:
        quota_us, period_us = int(quota), int(period)
    except ValueError:
        return None
    return quota_us / period_us if quota_us > 0 and period_us > 0 else None


def _quotas_upwards(root: Path, version: int, mount_point: PurePosixPath, group: PurePosixPath) -> list[float]:
    """Quotas of a group and of every group above it, up to the mount point."""
    found = []
    for level in (group, *group.parents):
        folder = root / str(mount_point).lstrip("/") / str(level).lstrip("/")
        if version == 2:
            quota = parse_cpu_max(_read(folder / "cpu.max") or "")
        else:
            quota = _ratio((_read(folder / "cpu.cfs_quota_us") or "").strip(), (_read(folder / "cpu.cfs_period_us") or "").strip())
        if quota is not None:
            found.append(quota)
    return found


def _cgroup_mounts(mountinfo: str) -> list[tuple[int, PurePosixPath, PurePosixPath]]:
    """(version, root of the mount inside the hierarchy, mount point) of every mount that can limit CPU time."""
    mounts = []
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if not separator or len(fields) < 5 or not kind:
            continue
        where = PurePosixPath(fields[3]), PurePosixPath(fields[4])
        if kind[0] == "cgroup2":
            mounts.append((2, *where))
        elif kind[0] == "cgroup" and "cpu" in kind[-1].split(","):
            mounts.append((1, *where))
    return mounts


def _below(group: str, mount_root: PurePosixPath) -> PurePosixPath:
    """The group's path as seen from the mount; a group outside of it (another namespace) is seen as the mount itself."""
    path = PurePosixPath(group)
    return PurePosixPath("/") / path.relative_to(mount_root) if path.is_relative_to(mount_root) else PurePosixPath("/")


def _affinity() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _core(root: Path, cpu: int) -> tuple:
    """What two hyper-threads of one physical core have in common; the CPU itself where that is not known."""
    topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    package, core = _read(topology / "physical_package_id"), _read(topology / "core_id")
    return (cpu,) if package is None or core is None else (package.strip(), core.strip())


def _openmp_wish(value: str | None) -> int | None:
    """The outermost level of an OMP_NUM_THREADS list; None where it is unset or no positive number."""
    first = (value or "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None
