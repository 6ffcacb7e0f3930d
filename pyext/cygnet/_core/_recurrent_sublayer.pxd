"""A recurrent sublayer; see pyext/_recurrent_sublayer.pyx."""

from libc.stdint cimport int64_t

from cygnet._core._linear cimport Linear, Rows
from cygnet._core._pass cimport Pass

cdef struct Recurrent:
    const Linear *parts      # forget and input side by side
    int count
    int64_t width
    int64_t offset           # elements from the base of a block to the states of this layer

cdef void recurrent_in(Pass *p, int thread, const Recurrent *r, const Rows *rows) noexcept nogil
cdef void recurrent_mix(Pass *p, int thread, const Recurrent *r, float alpha, int accumulate, float *y) noexcept nogil
