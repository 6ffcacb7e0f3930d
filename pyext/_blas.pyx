"""Float32 products through the BLAS that scipy ships: y = alpha * x W^T + beta * y. Nothing else calls BLAS."""

from libc.limits cimport INT_MAX
from libc.stdint cimport int64_t

from scipy.linalg.cython_blas cimport sgemm

from cygnet.errors import OptionError


cdef bint blas_fits(int64_t m, int64_t n, int64_t k, int64_t ldx, int64_t ldw, int64_t ldy) noexcept nogil:
    return max(m, n, k, ldx, ldw, ldy) <= INT_MAX


cdef void blas_linear(int64_t m, int64_t n, int64_t k, float alpha, const float *x, int64_t ldx, const float *w, int64_t ldw, float beta, float *y,
                      int64_t ldy) noexcept nogil:
    # A row-major matrix is the transpose of a column-major one: y^T (n, m) = w x^T.
    cdef int columns = <int> n, rows = <int> m, inner = <int> k, stride_w = <int> max(ldw, 1), stride_x = <int> max(ldx, 1), stride_y = <int> max(ldy, 1)
    if m > 0 and n > 0:
        sgemm("T", "N", &columns, &rows, &inner, &alpha, <float *> w, &stride_w, <float *> x, &stride_x, &beta, y, &stride_y)


def linear(const float[:, ::1] x, const float[:, ::1] weight, float[:, ::1] out, float alpha=1.0, float beta=0.0):
    """out (M, N) = alpha * x (M, K) weight (N, K)^T + beta * out; sizes up to 2^31 - 1."""
    cdef int64_t m = x.shape[0], n = weight.shape[0], k = x.shape[1]
    cdef const float *left = NULL
    cdef const float *right = NULL
    if weight.shape[1] != k or out.shape[0] != m or out.shape[1] != n:
        raise OptionError(f"linear: x {m} x {k}, weight {n} x {weight.shape[1]} and out {out.shape[0]} x {out.shape[1]} do not fit together")
    if not blas_fits(m, n, k, k, k, n):
        raise OptionError(f"linear: a product of {m} x {k} by {n} x {k} has a side beyond what BLAS can count (2^31 - 1)")
    if m == 0 or n == 0:
        return
    if k:
        left, right = &x[0, 0], &weight[0, 0]
    with nogil:
        blas_linear(m, n, k, alpha, left, k, right, k, beta, &out[0, 0], n)
