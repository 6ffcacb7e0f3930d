"""The default thread count: quota files of both cgroup versions, nesting, hyper-threads, OMP_NUM_THREADS."""

import os
import subprocess
import sys

import pytest

from cygnet import cpu_count
from cygnet.errors import OptionError


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A made-up machine: write(path, text) adds a file, cores(n) sets the affinity."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    class Machine:
        root = tmp_path

        def write(self, path, text):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)

        def cores(self, n, per_core=1):
            monkeypatch.setattr(cpu_count, "_affinity", lambda: set(range(n)))
            for cpu in range(n):
                self.write(f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", "0\n")
                self.write(f"sys/devices/system/cpu/cpu{cpu}/topology/core_id", f"{cpu // per_core}\n")

        def usable(self):
            return cpu_count.usable_cores(tmp_path)

    return Machine()


V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
V1_MOUNT = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"


@pytest.mark.parametrize(
    "line, cpus",
    [("max 100000", None), ("200000 100000", 2), ("150000 100000", 1.5), ("50000", 0.5), ("", None), ("0 100000", None), ("-1 1", None), ("x", None)],
)
def test_cpu_max_line(line, cpus):
    assert cpu_count.parse_cpu_max(line) == cpus


@pytest.mark.parametrize("quota, threads", [("200000 100000", 2), ("150000 100000", 2), ("10000 100000", 1), ("max 100000", 8), ("6400000 1000", 8)])
def test_quota_v2(machine, quota, threads):
    machine.cores(8)
    machine.write("proc/self/cgroup", "0::/app\n")
    machine.write("proc/self/mountinfo", V2_MOUNT)
    machine.write("sys/fs/cgroup/app/cpu.max", quota + "\n")
    assert machine.usable() == threads


def test_least_quota_of_nested_groups_wins(machine):
    machine.cores(16)
    machine.write("proc/self/cgroup", "0::/slice/pod/box\n")
    machine.write("proc/self/mountinfo", V2_MOUNT)
    machine.write("sys/fs/cgroup/slice/cpu.max", "800000 100000")
    machine.write("sys/fs/cgroup/slice/pod/cpu.max", "300000 100000")
    machine.write("sys/fs/cgroup/slice/pod/box/cpu.max", "max 100000")
    assert machine.usable() == 3


def test_quota_v1(machine):
    machine.cores(8)
    machine.write("proc/self/cgroup", "5:memory:/m\n3:cpu,cpuacct:/docker/abc\n0::/\n")
    machine.write("proc/self/mountinfo", V1_MOUNT)
    machine.write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "200000\n")
    machine.write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n")
    assert machine.usable() == 2
    machine.write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n")
    assert machine.usable() == 8


def test_mount_of_a_group_inside_a_container(machine):
    """Inside a container the mount shows the container's own group as its root."""
    machine.cores(8)
    machine.write("proc/self/cgroup", "3:cpu,cpuacct:/docker/abc\n")
    machine.write("proc/self/mountinfo", V1_MOUNT.replace(" / /sys", " /docker/abc /sys"))
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "100000\n")
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    assert machine.usable() == 1


def test_no_files_at_all(machine, monkeypatch):
    monkeypatch.setattr(cpu_count, "_affinity", lambda: {0, 3})
    assert machine.usable() == 2


def test_damaged_files_are_no_quota(machine):
    machine.cores(4)
    machine.write("proc/self/cgroup", "nonsense\n0::/a\n")
    machine.write("proc/self/mountinfo", "short - cgroup2\n\n" + V2_MOUNT)
    machine.write("sys/fs/cgroup/a/cpu.max", "not a number at all")
    assert machine.usable() == 4


def test_hyper_threads_count_once(machine):
    machine.cores(8, per_core=2)
    assert machine.usable() == 4


@pytest.mark.parametrize("value, wish", [("3", 3), ("5,2", 5), ("", None), ("0", None), ("many", None), (None, None), (" 2 ", 2)])
def test_openmp_wish(value, wish):
    assert cpu_count._openmp_wish(value) == wish


def test_order_of_precedence(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert cpu_count.thread_count() == 7
    assert cpu_count.thread_count(2) == 2
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert 1 <= cpu_count.thread_count() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "2"])
def test_wrong_thread_counts(wrong):
    with pytest.raises(OptionError, match="threads must be a whole number"):
        cpu_count.thread_count(wrong)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_affinity_of_the_process():
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from cygnet.cpu_count import usable_cores; print(usable_cores())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "1"


def test_the_environment_is_cut_to_what_a_team_holds(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "99999")
    assert cpu_count.thread_count() == cpu_count.MAX_THREADS == cpu_count.thread_count(255)
    for threads in (0, -1, 256, 99999, True, "2", 1.5):
        with pytest.raises(OptionError, match="threads must be a whole number from 1 to 255"):
            cpu_count.thread_count(threads)
