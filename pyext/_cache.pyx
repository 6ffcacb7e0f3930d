"""Paged key/value memory: sequences are lists of reference-counted blocks of CYG_KEY_BLOCK positions, each holding all layers.

Forking a sequence (a beam, another sample of a prompt, a shared system prompt) copies the list, not the keys; a block that is shared is copied when
one of its owners writes to it. Paged attention is due to Kwon et al. 2023 (vLLM).
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from cygnet._core._kernels cimport CYG_KEY_BLOCK
from cygnet._core._linear cimport memory_give, memory_take

from cygnet.errors import CacheFull, OptionError

BLOCK_TOKENS = CYG_KEY_BLOCK
cdef size_t WARM_BYTES = 64 << 20  # memory of unused blocks that is kept for the next sequence


cdef class BlockPool:
    """Blocks of `block_bytes` bytes, at most `limit` of them at a time."""

    def __cinit__(self, size_t block_bytes, int64_t limit):
        if limit < 1 or limit > 1 << 30:
            raise OptionError(f"the key/value memory must hold between 1 and 2**30 blocks, not {limit}")
        self.block_bytes = block_bytes
        self.limit = limit

    def __dealloc__(self):
        cdef int32_t i
        for i in range(self.capacity):
            memory_give(self.memory[i])
        free(self.memory)
        free(self.users)
        free(self.unused)

    @property
    def used(self):
        """Blocks in use."""
        return self.capacity - self.unused_count

    @property
    def free(self):
        """Blocks that can still be taken."""
        return self.limit - self.used

    cdef int32_t take(self) except -1:
        """A block with one user; its memory is zero or holds old finite numbers."""
        cdef int32_t block
        if self.unused_count == 0:
            self._grow()
        block = self.unused[self.unused_count - 1]
        if self.memory[block] == NULL:
            self.memory[block] = memory_take(self.block_bytes)
            if self.memory[block] == NULL:
                raise CacheFull(f"cannot allocate {self.block_bytes} bytes for a key/value block")
            memset(self.memory[block], 0, self.block_bytes)
        else:
            self.warm -= 1
        self.unused_count -= 1
        self.users[block] = 1
        return block

    cdef void give(self, int32_t block) noexcept:
        """Drops one user of a block."""
        self.users[block] -= 1
        if self.users[block] == 0:
            if self.warm * self.block_bytes < WARM_BYTES:
                self.warm += 1
            else:
                memory_give(self.memory[block])
                self.memory[block] = NULL
            self.unused[self.unused_count] = block
            self.unused_count += 1

    def _grow(self):
        cdef int64_t wanted = min(max(2 * self.capacity, 16), self.limit)
        cdef int32_t i
        if self.capacity >= self.limit:
            raise CacheFull(f"the key/value memory of {self.limit} blocks ({self.limit * BLOCK_TOKENS} tokens) is full; "
                            "raise the limit at load, shorten the prompts or run fewer at once")
        for name in range(3):
            if not self._resize(name, wanted):
                raise CacheFull("cannot allocate the block tables")
        for i in range(self.capacity, <int32_t>wanted):
            self.memory[i] = NULL
            self.users[i] = 0
            self.unused[self.unused_count] = <int32_t>wanted - 1 - (i - self.capacity)
            self.unused_count += 1
        self.capacity = <int32_t>wanted

    cdef bint _resize(self, int table, int64_t wanted):
        cdef void *grown
        if table == 0:
            grown = realloc(self.memory, wanted * sizeof(void *))
            self.memory = <void **>grown if grown != NULL else self.memory
        elif table == 1:
            grown = realloc(self.users, wanted * sizeof(int32_t))
            self.users = <int32_t *>grown if grown != NULL else self.users
        else:
            grown = realloc(self.unused, wanted * sizeof(int32_t))
            self.unused = <int32_t *>grown if grown != NULL else self.unused
        return grown != NULL


@cython.no_gc_clear  # the pool must outlive the blocks
cdef class Sequence:
    """One sequence of tokens in the key/value memory.

    Attributes
    ----------
    length : int
        Tokens stored.
    source : object
        What the sequence attends to across (an encoded source), or None.
    """

    def __init__(self, BlockPool pool, source=None):
        self.pool = pool
        self.source = source

    def __dealloc__(self):
        if self.pool is not None:
            self._drop(0)
        free(self.numbers)
        free(self.blocks)

    def __len__(self):
        return self.length

    def fork(self):
        """A second sequence with the same tokens, sharing all memory until one of them writes."""
        cdef Sequence other = Sequence(self.pool, self.source)
        cdef int64_t i, used = (self.length + CYG_KEY_BLOCK - 1) // CYG_KEY_BLOCK
        other._make_room(used)
        for i in range(used):
            other.numbers[i] = self.numbers[i]
            other.blocks[i] = self.blocks[i]
            self.pool.users[self.numbers[i]] += 1
        other.count = used
        other.length = self.length
        return other

    def truncate(self, int64_t length):
        """Forgets all tokens from `length` on."""
        if not 0 <= length <= self.length:
            raise OptionError(f"cannot truncate a sequence of {self.length} tokens to {length}")
        self.length = length
        self._drop((length + CYG_KEY_BLOCK - 1) // CYG_KEY_BLOCK)

    def release(self):
        """Gives all memory back; the sequence is empty and may be used again."""
        self.length = 0
        self._drop(0)

    def blocks_needed(self, int64_t tokens):
        """Blocks that appending `tokens` tokens would take from the pool."""
        cdef int64_t total = (self.length + tokens + CYG_KEY_BLOCK - 1) // CYG_KEY_BLOCK
        return max(total - self.count, 0) + (1 if tokens > 0 and self._tail_is_shared() else 0)

    cdef bint _tail_is_shared(self):
        """Whether the next token falls into a block that another sequence uses too."""
        cdef int64_t tail = self.length // CYG_KEY_BLOCK
        return tail < self.count and self.pool.users[self.numbers[tail]] > 1

    cdef int reserve(self, int64_t tokens) except -1:
        """Makes room for `tokens` more, in blocks of its own; length stays until advance()."""
        cdef int64_t total = (self.length + tokens + CYG_KEY_BLOCK - 1) // CYG_KEY_BLOCK, tail = self.length // CYG_KEY_BLOCK
        cdef int32_t block
        if tokens > 0 and self._tail_is_shared():
            block = self.pool.take()
            memcpy(self.pool.memory[block], self.blocks[tail], self.pool.block_bytes)
            self.pool.give(self.numbers[tail])
            self.numbers[tail] = block
            self.blocks[tail] = self.pool.memory[block]
        self._make_room(total)
        while self.count < total:
            block = self.pool.take()
            self.numbers[self.count] = block
            self.blocks[self.count] = self.pool.memory[block]
            self.count += 1
        return 0

    cdef void advance(self, int64_t tokens) noexcept:
        self.length += tokens

    def _make_room(self, int64_t blocks):
        cdef int64_t wanted
        cdef void *grown
        if blocks <= self.capacity:
            return
        wanted = max(blocks, 2 * self.capacity, 8)
        grown = realloc(self.numbers, wanted * sizeof(int32_t))
        if grown == NULL:
            raise CacheFull("cannot allocate a block list")
        self.numbers = <int32_t *>grown
        grown = realloc(self.blocks, wanted * sizeof(void *))
        if grown == NULL:
            raise CacheFull("cannot allocate a block list")
        self.blocks = <void **>grown
        self.capacity = wanted

    cdef _drop(self, int64_t keep):
        while self.count > keep:
            self.count -= 1
            self.pool.give(self.numbers[self.count])
