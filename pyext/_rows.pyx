"""Reductions over a row of logits: the largest entries, log-sum-exp, log-probabilities. Sums are taken in double, in order of index."""

from libc.math cimport INFINITY, expf, log
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc


cdef int64_t largest(const float *row, int64_t n) noexcept nogil:
    """Index of the largest element, the first of equals; -1 if there is none above minus infinity. NaN never wins."""
    cdef float best[16]
    cdef float top = -INFINITY
    cdef int64_t i, whole = n - n % 16
    cdef int j
    for j in range(16):
        best[j] = -INFINITY
    for i in range(0, whole, 16):
        for j in range(16):
            best[j] = row[i + j] if row[i + j] > best[j] else best[j]
    for j in range(16):
        top = best[j] if best[j] > top else top
    for i in range(whole, n):
        top = row[i] if row[i] > top else top
    if top == -INFINITY:
        return -1
    i = 0
    while row[i] != top:
        i += 1
    return i


cdef double log_sum_exp(const float *row, int64_t n) noexcept nogil:
    """log(sum(exp(row))), summed in double; minus infinity for a row without a finite entry."""
    cdef int64_t i, top = largest(row, n)
    cdef double total = 0
    if top < 0:
        return -INFINITY
    for i in range(n):
        if row[i] > -INFINITY:
            total += expf(row[i] - row[top])
    return <double>row[top] + log(total)


def log_softmax_row(float[::1] row):
    """x - log(sum(exp(x))) in place."""
    cdef int64_t i, n = row.shape[0]
    cdef double total
    total = log_sum_exp(&row[0], n)
    if total > -INFINITY:
        for i in range(n):
            row[i] = <float>(row[i] - total)


def gather_logprobs(const float[:, ::1] logits, const int64_t[::1] ids, double[::1] out):
    """Natural-log probability of ids[i] under row i of raw logits, into `out` (R,) float64."""
    cdef int64_t i, n = logits.shape[1]
    with nogil:
        for i in range(logits.shape[0]):
            out[i] = logits[i, ids[i]] - log_sum_exp(&logits[i, 0], n)


def top_logprobs(const float[::1] row, int64_t chosen, int64_t count):
    """Log-probabilities under one row of raw logits.

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
    cdef double total
    total = log_sum_exp(&row[0], n)
    if count <= 0:
        return row[chosen] - total, []
    count = min(count, n)
    cdef float *heap = <float *>malloc(count * sizeof(float))
    cdef int64_t *best = <int64_t *>malloc(count * sizeof(int64_t))
    try:
        if heap == NULL or best == NULL:
            raise MemoryError
        best_ids(&row[0], n, count, heap, best)
        found = [(best[i], row[best[i]] - total) for i in range(count)]
    finally:
        free(heap)
        free(best)
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    return row[chosen] - total, found


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
