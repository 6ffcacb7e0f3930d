"""The team that runs every parallel job; see pyext/_threads.pyx."""

from libc.stdint cimport int64_t

cdef extern from "team.h":
    ctypedef void (*team_job)(void *argument, int thread) noexcept nogil
    struct team:
        int stop
        int size
    int team_barrier(team *t) noexcept nogil
    int64_t team_claim(team *t, int64_t count) noexcept nogil

cdef class Job:
    """The team held by one caller: begin() waits for it, run() works, end() gives it back."""
    cdef team *members
    cdef int threads
    cdef int run(self, team_job job, void *argument, const int *cancel) except -1
