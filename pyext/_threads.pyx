"""Threads: one team of workers a process, made by one OpenMP region, shared by every model.

The region lives in a daemon thread of its own for the life of the process; its members sleep between jobs. One job runs at a time, with the
caller as member 0, so any number of calling threads never make more workers, and a forked child, which has none, makes its own.
"""

import os
import threading

cimport openmp
from cython.parallel cimport parallel
from libc.stdlib cimport calloc, free
from libc.stdint cimport int64_t

cdef extern from "team.h":
    struct team_stage:
        pass
    void team_init(team *t, team_stage *stages) noexcept nogil
    int team_run(team *t, team_job job, void *argument, int size, const int *cancel) noexcept nogil
    void team_serve(team *t, int thread) noexcept nogil
    void team_dismiss(team *t) noexcept nogil

MAX_THREADS = 255


cdef class _Workers:
    """The members of one OpenMP region; dismissed ones leave it."""
    cdef team *members
    cdef int size  # the caller included
    cdef object started

    def __cinit__(self, int size):
        # Kept for good: a dismissed worker may still look at it. Only the stages that a job reaches are ever touched.
        cdef char *memory = <char *>calloc(1, sizeof(team) + TEAM_STAGES * sizeof(team_stage) + 64)
        if memory == NULL:
            raise MemoryError()
        self.members = <team *>((<size_t>memory + 63) & ~<size_t>63)
        team_init(self.members, <team_stage *>(self.members + 1))
        self.size = size
        self.started = threading.Event()

    def serve(self):
        cdef team *members = self.members
        cdef int workers = self.size - 1
        self.started.set()
        with nogil, parallel(num_threads=workers):
            team_serve(members, openmp.omp_get_thread_num() + 1)


_lock = threading.Lock()
_workers = None
_owner = 0


def _forget():
    """In a forked child: the workers stayed in the parent."""
    global _lock, _workers, _owner
    _lock = threading.Lock()
    _workers = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


cdef _Workers _ensure(int size):
    global _workers
    cdef _Workers current = _workers
    if current is None or current.size < size:
        if current is not None:
            team_dismiss(current.members)
        current = _workers = _Workers(size)
        if size > 1:
            threading.Thread(target=current.serve, name="cygnet-workers", daemon=True).start()
            current.started.wait()
    return current


cdef class Job:
    """The team, held by one caller from begin to end.

    Used as a context manager: ``with Job(threads) as job: job.run(...)``.
    """

    def __cinit__(self, int threads):
        if not 1 <= threads <= 255:
            raise ValueError(f"threads must be in 1..{MAX_THREADS}, not {threads}")
        self.threads = threads

    def __enter__(self):
        _lock.acquire()
        try:
            self.members = _ensure(self.threads).members
        except BaseException:
            _lock.release()
            raise
        return self

    def __exit__(self, *exception):
        self.members = NULL
        _lock.release()

    cdef int run(self, team_job job, void *argument, const int *cancel) except -1:
        """Runs job(argument, thread) on every member; returns 1 if the cancel flag stopped it, else 0."""
        cdef int stopped
        with nogil:
            stopped = team_run(self.members, job, argument, self.threads, cancel)
        return stopped


cdef struct _Probe:
    team *members
    int64_t shares
    int64_t *done_by


cdef void _probe(void *argument, int thread) noexcept nogil:
    cdef _Probe *p = <_Probe *>argument
    cdef int64_t share
    for _ in range(3):
        while True:
            share = team_claim(p.members, thread, 1, p.shares)
            if share >= p.shares:
                break
            p.done_by[share] += 1
        team_finish(p.members, thread, p.shares)


def probe(int threads, int64_t shares):
    """Runs three stages of `shares` shares on a team and returns how often each share was done (3, if the team works)."""
    cdef _Probe p
    cdef Job job
    p.shares = shares
    p.done_by = <int64_t *>calloc(max(shares, 1), sizeof(int64_t))
    try:
        with Job(threads) as job:
            p.members = job.members
            job.run(_probe, &p, NULL)
        return [p.done_by[i] for i in range(shares)]
    finally:
        free(p.done_by)
