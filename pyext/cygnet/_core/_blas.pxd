# The only user of BLAS. Sizes are C int there: check with blas_fits first.
from libc.stdint cimport int64_t

cdef bint blas_fits(int64_t m, int64_t n, int64_t k, int64_t ldx, int64_t ldw, int64_t ldy) noexcept nogil
# y (m, n) = alpha * x (m, k) w (n, k)^T + beta * y, row-major with row strides.
cdef void blas_linear(int64_t m, int64_t n, int64_t k, float alpha, const float *x, int64_t ldx, const float *w, int64_t ldw, float beta, float *y,
                      int64_t ldy) noexcept nogil
