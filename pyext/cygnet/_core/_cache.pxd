"""Paged key/value memory; see pyext/_cache.pyx."""

from libc.stdint cimport int32_t, int64_t

cdef class BlockPool:
    """Reference-counted blocks of one size."""
    cdef void **slabs       # memory of slab_blocks blocks each; NULL: not allocated
    cdef int32_t *slab_users  # blocks of a slab that are in use
    cdef int32_t *users     # by block number; -1: its memory has never been used
    cdef int32_t *unused    # a heap of block numbers that nobody uses
    cdef int32_t unused_count, warm, capacity, slab_blocks
    cdef readonly size_t block_bytes
    cdef readonly int64_t limit
    cdef int32_t take(self) except -1
    cdef void give(self, int32_t block) noexcept
    cdef void *at(self, int32_t block) noexcept
    cdef int _allocate(self, int32_t slab) except -1
    cdef void _push(self, int32_t block) noexcept
    cdef void _pop(self) noexcept
    cdef int _grow(self) except -1

cdef class Sequence:
    """The keys and values of one sequence: a list of blocks, most of them perhaps shared."""
    cdef readonly BlockPool pool
    cdef readonly int64_t length, announced
    cdef readonly object source
    cdef int32_t *numbers
    cdef void **blocks
    cdef int64_t count, capacity
    cdef int reserve(self, int64_t tokens) except -1
    cdef void advance(self, int64_t tokens) noexcept
    cdef bint _tail_is_shared(self)
    cdef _drop(self, int64_t keep)
