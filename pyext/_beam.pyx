"""The selection of a beam-search step: the best continuations over all running beams."""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc


cdef struct Candidate:
    double total
    int64_t place  # beam * V + token


cdef inline bint worse(const Candidate *a, const Candidate *b) noexcept nogil:
    """Lower total, or an equal one further back."""
    return a.total < b.total or (a.total == b.total and a.place > b.place)


cdef void sink(Candidate *heap, int64_t size, int64_t at) noexcept nogil:
    """Restores a heap whose root is the worst, after heap[at] was replaced."""
    cdef Candidate moving = heap[at]
    cdef int64_t child = 2 * at + 1
    while child < size:
        if child + 1 < size and worse(&heap[child + 1], &heap[child]):
            child += 1
        if not worse(&heap[child], &moving):
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = moving


cdef void select(const float *logprobs, int64_t n, int64_t beam, double score, Candidate *heap, int64_t keep) noexcept nogil:
    """Puts the continuations of one beam that belong among the best `keep` into the heap."""
    cdef int64_t i
    cdef double total
    for i in range(n):
        total = score + logprobs[i]
        # Rows come in order, so that of equal totals the first stays. Minus infinity and NaN never enter.
        if total > heap[0].total:
            heap[0].total = total
            heap[0].place = beam * n + i
            sink(heap, keep, 0)


def best_continuations(const float[:, ::1] logprobs, const double[::1] scores, int64_t keep):
    """The `keep` best sums of a beam's score and a token's log-probability.

    Parameters
    ----------
    logprobs : (B, V) float32
    scores : (B,) float64
    keep : int

    Returns
    -------
    list of (float, int, int)
        Total, beam, token; best first, equal ones in order of beam and token; fewer where fewer are above minus infinity.

    Examples
    --------
    >>> import numpy as np
    >>> best_continuations(np.array([[-1, -2], [-1, -9]], np.float32), np.array([-0.5, 0]), 2)
    [(-1.0, 1, 0), (-1.5, 0, 0)]
    """
    cdef int64_t i, n = logprobs.shape[1]
    cdef Candidate *heap = <Candidate *>malloc(keep * sizeof(Candidate))
    if heap == NULL:
        raise MemoryError
    try:
        for i in range(keep):
            heap[i].total = -INFINITY
            heap[i].place = logprobs.shape[0] * n
        for i in range(logprobs.shape[0]):
            select(&logprobs[i, 0], n, i, scores[i], heap, keep)
        found = [(heap[i].total, heap[i].place) for i in range(keep) if heap[i].total > -INFINITY]
    finally:
        free(heap)
    found.sort(key=lambda pair: (-pair[0], pair[1]))
    return [(total, place // n, place % n) for total, place in found]
