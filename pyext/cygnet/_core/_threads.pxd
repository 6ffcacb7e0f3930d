"""The team that runs every parallel job; see pyext/_threads.pyx."""

from libc.stdint cimport int64_t

cdef extern from "team.h":
    ctypedef void (*team_job)(void *argument, int thread) noexcept nogil
    ctypedef int team_counter
    enum: TEAM_STAGES
    struct team:
        int size
    int64_t team_claim(team *t, int thread, int64_t count, int64_t total) noexcept nogil
    int64_t team_claim_near(team *t, int thread, int64_t total) noexcept nogil
    void team_finish(team *t, int thread, int64_t total) noexcept nogil
    bint team_last(team_counter *counter, int total) noexcept nogil
    void team_meet(team *t, int thread) noexcept nogil
    bint team_behind(team *t, int thread) noexcept nogil
    bint team_stopped(team *t, int thread) noexcept nogil

cdef class Job:
    """The team held by one caller: begin() waits for it, run() works, end() gives it back."""
    cdef team *members
    cdef int threads
    cdef int run(self, team_job job, void *argument, const int *cancel) except -1
