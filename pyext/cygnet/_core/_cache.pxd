"""Paged key/value memory; see pyext/_cache.pyx."""

from libc.stdint cimport int32_t, int64_t

cdef class BlockPool:
    """Reference-counted blocks of one size."""
    cdef void **memory      # by block number; NULL: not allocated
    cdef int32_t *users
    cdef int32_t *unused    # a stack of block numbers that nobody uses
    cdef int32_t unused_count, warm, capacity
    cdef readonly size_t block_bytes
    cdef readonly int64_t limit
    cdef int32_t take(self) except -1
    cdef void give(self, int32_t block) noexcept
    cdef bint _resize(self, int table, int64_t wanted)

cdef class Sequence:
    """The keys and values of one sequence: a list of blocks, most of them perhaps shared."""
    cdef readonly BlockPool pool
    cdef readonly int64_t length
    cdef readonly object source
    cdef int32_t *numbers
    cdef void **blocks
    cdef int64_t count, capacity
    cdef int reserve(self, int64_t tokens) except -1
    cdef void advance(self, int64_t tokens) noexcept
    cdef bint _tail_is_shared(self)
    cdef _drop(self, int64_t keep)
