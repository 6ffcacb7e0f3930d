"""Paged key/value memory: sequences are lists of reference-counted blocks of CYG_KEY_BLOCK positions, each holding all layers.

Forking a sequence (a beam, another sample of a prompt, a shared system prompt) copies the list, not the keys; a block that is shared is copied when
one of its owners writes to it. Paged attention is due to Kwon et al. 2023 (vLLM).
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from cygnet._core._kernels cimport CYG_KEY_BLOCK
from cygnet._core._linear cimport memory_give, memory_take

from cygnet.errors import CacheFull, OptionError

BLOCK_TOKENS = CYG_KEY_BLOCK
cdef size_t SLAB_BYTES = 8 << 20   # blocks are allocated so many bytes at a time, which then lie in huge pages
cdef size_t WARM_BYTES = 64 << 20  # memory of unused slabs that is kept for the next sequence


cdef class BlockPool:
    """Blocks of `block_bytes` bytes, at most `limit` of them at a time.

    The lowest unused block is taken first, so that the highest slabs come to be unused and can be given back.
    """

    def __cinit__(self, size_t block_bytes, int64_t limit):
        if block_bytes < 1 or limit < 1 or limit > 1 << 30:
            raise OptionError(f"the key/value memory must hold between 1 and 2**30 blocks, not {limit}")
        self.block_bytes = block_bytes
        self.limit = limit
        self.slab_blocks = <int32_t>min((SLAB_BYTES - 1) // block_bytes + 1, <size_t>limit)

    def __dealloc__(self):
        cdef int32_t slab
        for slab in range(self.capacity // self.slab_blocks):
            memory_give(self.slabs[slab])
        free(self.slabs)
        free(self.slab_users)
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

    cdef void *at(self, int32_t block) noexcept:
        return <char *>self.slabs[block // self.slab_blocks] + <size_t>(block % self.slab_blocks) * self.block_bytes

    cdef int32_t take(self) except -1:
        """A block with one user; its memory is zero or holds old numbers."""
        cdef int32_t block, slab
        if self.used >= self.limit:
            raise CacheFull(f"the key/value memory of {self.limit} blocks ({self.limit * BLOCK_TOKENS} tokens) is full; "
                            "shorten the prompts or run fewer at once")
        if self.unused_count == 0:
            self._grow()
        block = self.unused[0]
        slab = block // self.slab_blocks
        if self.slabs[slab] == NULL:
            self._allocate(slab)
        elif self.slab_users[slab] == 0:
            self.warm -= 1
        if self.users[block] < 0:
            memset(self.at(block), 0, self.block_bytes)
        self._pop()
        self.users[block] = 1
        self.slab_users[slab] += 1
        return block

    cdef void give(self, int32_t block) noexcept:
        """Drops one user of a block."""
        cdef int32_t slab = block // self.slab_blocks
        self.users[block] -= 1
        if self.users[block] > 0:
            return
        self._push(block)
        self.slab_users[slab] -= 1
        if self.slab_users[slab] == 0:
            if self.warm * self.slab_blocks * self.block_bytes < WARM_BYTES:
                self.warm += 1
            else:
                memory_give(self.slabs[slab])
                self.slabs[slab] = NULL

    cdef int _allocate(self, int32_t slab) except -1:
        cdef int32_t i
        self.slabs[slab] = memory_take(self.slab_blocks * self.block_bytes)
        if self.slabs[slab] == NULL:
            raise CacheFull(f"cannot allocate {self.slab_blocks * self.block_bytes} bytes for key/value blocks")
        for i in range(self.slab_blocks):
            self.users[slab * self.slab_blocks + i] = -1
        return 0

    # Unused blocks are a binary heap, the lowest on top.

    cdef void _push(self, int32_t block) noexcept:
        cdef int32_t i = self.unused_count, parent
        self.unused_count += 1
        while i > 0:
            parent = (i - 1) // 2
            if self.unused[parent] < block:
                break
            self.unused[i] = self.unused[parent]
            i = parent
        self.unused[i] = block

    cdef void _pop(self) noexcept:
        cdef int32_t i = 0, child, last
        self.unused_count -= 1
        last = self.unused[self.unused_count]
        while True:
            child = 2 * i + 1
            if child + 1 < self.unused_count and self.unused[child + 1] < self.unused[child]:
                child += 1
            if child >= self.unused_count or last < self.unused[child]:
                break
            self.unused[i] = self.unused[child]
            i = child
        self.unused[i] = last

    cdef int _grow(self) except -1:
        """Room in the tables for twice as many slabs; the last slab may reach beyond the limit."""
        cdef int64_t most = (self.limit + self.slab_blocks - 1) // self.slab_blocks, before = self.capacity // self.slab_blocks
        cdef int64_t slabs = min(max(2 * before, 4), most), i
        cdef size_t blocks = slabs * self.slab_blocks
        for grown in (_resized(<void **>&self.slabs, slabs * sizeof(void *)), _resized(<void **>&self.slab_users, slabs * sizeof(int32_t)),
                      _resized(<void **>&self.users, blocks * sizeof(int32_t)), _resized(<void **>&self.unused, blocks * sizeof(int32_t))):
            if not grown:
                raise CacheFull("cannot allocate the block tables")
        for i in range(before, slabs):
            self.slabs[i] = NULL
            self.slab_users[i] = 0
        for i in range(self.capacity, <int64_t>blocks):
            self.users[i] = 0
            self._push(<int32_t>i)
        self.capacity = <int32_t>blocks
        return 0


cdef bint _resized(void **table, size_t size):
    cdef void *grown = realloc(table[0], size)
    if grown != NULL:
        table[0] = grown
    return grown != NULL


@cython.no_gc_clear  # the pool must outlive the blocks
cdef class Sequence:
    """One sequence of tokens in the key/value memory.

    Attributes
    ----------
    length : int
        Tokens stored.
    announced : int
        Tokens of the text whose next pieces are being read; see announce().
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
        other.length, other.announced = self.length, self.announced
        return other

    def truncate(self, int64_t length):
        """Forgets all tokens from `length` on."""
        if not 0 <= length <= self.length:
            raise OptionError(f"cannot truncate a sequence of {self.length} tokens to {length}")
        self.length = self.announced = length
        self._drop((length + CYG_KEY_BLOCK - 1) // CYG_KEY_BLOCK)

    def release(self):
        """Gives all memory back; the sequence is empty and may be used again."""
        self.length = self.announced = 0
        self._drop(0)

    def announce(self, int64_t length):
        """Tells that a text of so many tokens is about to be read, perhaps in pieces: each gets the rotary tables of the whole. truncate() forgets it."""
        self.announced = max(self.announced, length)

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
            memcpy(self.pool.at(block), self.blocks[tail], self.pool.block_bytes)
            self.pool.give(self.numbers[tail])
            self.numbers[tail] = block
            self.blocks[tail] = self.pool.at(block)
        self._make_room(total)
        while self.count < total:
            block = self.pool.take()
            self.numbers[self.count] = block
            self.blocks[self.count] = self.pool.at(block)
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
