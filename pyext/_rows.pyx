"""Reductions over a row of logits: the largest entries, log-sum-exp, log-probabilities. Every function may overwrite its row where it says so."""

from cygnet._core._kernels cimport kernels
from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc


cdef int64_t largest(const float *row, int64_t n) noexcept nogil:
    """Index of the largest element, the first of equals; -1 if there is none above minus infinity. NaN never wins."""
    cdef int64_t best = kernels().argmax(n, row)
    return best if best >= 0 and row[best] > -INFINITY else -1


def log_softmax_row(float[::1] row):
    """x - log(sum(exp(x))) in place; a row of minus infinities stays."""
    cdef int64_t n = row.shape[0]
    if largest(&row[0], n) >= 0:
        kernels().log_softmax(&row[0], n, 1, n)


def gather_logprobs(float[:, ::1] logits, const int64_t[::1] ids, double[::1] out):
    """Natural-log probability of ids[i] under row i of raw logits, into `out` (R,) float64; overwrites the logits."""
    cdef int64_t i, n = logits.shape[1]
    with nogil:
        for i in range(logits.shape[0]):
            kernels().log_softmax(&logits[i, 0], n, 1, n)
            out[i] = logits[i, ids[i]]


def top_logprobs(float[::1] row, int64_t chosen, int64_t count):
    """Log-probabilities under one row of raw logits, which is overwritten.

    Parameters
    ----------
    row : (V,) float32
    chosen : int
    count : int
        How many of the most likely tokens to list; 0 lists none.

    Returns
    -------
    (float, list of (int, float))
        The value of `chosen`, and the `count` best, best first, equal ones by rising id.
    """
    cdef int64_t n = row.shape[0], i
    log_softmax_row(row)
    if count <= 0:
        return row[chosen], []
    count = min(count, n)
    cdef float *heap = <float *>malloc(count * sizeof(float))
    cdef int64_t *best = <int64_t *>malloc(count * sizeof(int64_t))
    try:
        if heap == NULL or best == NULL:
            raise MemoryError
        best_ids(&row[0], n, count, heap, best)
        found = [(best[i], row[best[i]]) for i in range(count)]
    finally:
        free(heap)
        free(best)
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    return row[chosen], found


cdef void best_ids(const float *row, int64_t n, int64_t k, float *heap, int64_t *ids) noexcept nogil:
    """Indices of the k largest values in no order, of equal ones the first; `heap` has room for k."""
    cdef float bar = kth_largest(row, n, k, heap)
    cdef int64_t i, count = 0
    for i in range(n):
        if row[i] > bar:
            ids[count] = i
            count += 1
    i = 0
    while count < k:
        if row[i] == bar or row[i] != row[i]:
            ids[count] = i
            count += 1
        i += 1


cdef float kth_largest(const float *row, int64_t n, int64_t k, float *heap) noexcept nogil:
    """The k-th largest of n >= k values by a min-heap of k; `heap` has room for k."""
    cdef int64_t i, parent, child
    cdef float value
    for i in range(k):
        heap[i] = -INFINITY
    for i in range(n):
        value = row[i]
        if value > heap[0]:
            parent = 0
            while True:
                child = 2 * parent + 1
                if child >= k:
                    break
                if child + 1 < k and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= value:
                    break
                heap[parent] = heap[child]
                parent = child
            heap[parent] = value
    return heap[0]
