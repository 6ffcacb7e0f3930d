"""Packed weights and their products with rows of activations, by all threads.

A Weight is one product with one or more parts side by side (query, key and value; gate and up), which may be of different kinds.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from cygnet._core._kernels cimport CYG_F16, CYG_F32, CYG_GROUP, CYG_CODES, CYG_HADAMARD, CYG_I4, CYG_I4M, CYG_I8, CYG_I8H, CYG_VALUES, cyg_basis, cyg_kernels, cyg_product, cyg_weight_kind, kernels
from cygnet._core._packing cimport Unpacked
from cygnet._core._threads cimport team, team_claim_near, team_finish

from cygnet.errors import FormatError

KINDS = {"float32": CYG_F32, "float16": CYG_F16, "bfloat16": CYG_F16 + 1, "int8": CYG_I8, "int8-hadamard": CYG_I8H, "int4": CYG_I4M, "int4-symmetric": CYG_I4}


cdef class Arena:
    """One aligned piece of memory of `size` bytes, handed out in 64-byte steps."""

    def __cinit__(self, size_t size):
        self.memory = <char *>memory_take(size)
        if self.memory == NULL:
            raise MemoryError(f"cannot allocate {size} bytes for weights")
        self.size = size

    def __dealloc__(self):
        memory_give(self.memory)

    cdef void *take(self, size_t size) except NULL:
        cdef char *start = self.memory + self.used
        size = (size + 63) & ~<size_t>63
        if self.used + size > self.size:
            raise MemoryError(f"the weights need {self.used + size} bytes, {self.size} were planned")
        self.used += size
        return start

    @property
    def bytes_used(self):
        return self.used


def weight_bytes(parts):
    """Arena bytes of a Weight of these parts: a list of (kind, n, k)."""
    cdef const cyg_kernels *table = kernels()
    cdef int64_t n, k
    total = 0
    for kind, n, k in parts:
        panels = (n + table.nr - 1) // table.nr
        total += (panels * table.panel_bytes(<cyg_weight_kind><int>KINDS[kind], k) + 63) // 64 * 64 + (n * 4 + 63) // 64 * 64
    return total


cdef class Weight:
    """A product y = x W^T + b of one or more matrices over the same input.

    Parameters
    ----------
    arena : Arena
    parts : list of (kind, n, k, dtype, data, rows, bias)
        `kind` is a key of KINDS; `data` the stored rows as a uint8 array of `dtype` (a name such as "F32" or "Q4_1"), each row whole blocks;
        `rows` an int64 array choosing rows of data, or None; `bias` (n) float32 or None.
    waiting : list
        Receives an Unpacked for each part: the weight is complete once `pack` has worked through them.
    """

    def __cinit__(self, Arena arena, parts, list waiting):
        self.arena = arena
        self.parts = <Linear *>calloc(max(len(parts), 1), sizeof(Linear))
        if self.parts == NULL:
            raise MemoryError()
        for part in parts:
            waiting.append(self._add(*part))

    def __dealloc__(self):
        free(self.parts)

    def _add(self, kind, int64_t n, int64_t k, str dtype, data, rows, const float[::1] bias):
        cdef const cyg_kernels *table = kernels()
        cdef Linear *part = &self.parts[self.count]
        cdef Unpacked stored = Unpacked(dtype, n, k, data, rows)
        if bias is not None and bias.shape[0] != n:
            raise FormatError(f"a bias of {bias.shape[0]} elements for {n} output features")
        if self.count and k != self.k:
            raise FormatError(f"matrices over {self.k} and {k} features in one product")
        part.kind = <cyg_weight_kind><int>KINDS[kind]
        part.n, part.k, part.column = n, k, self.n
        part.panels = (n + table.nr - 1) // table.nr
        part.panel_bytes = table.panel_bytes(part.kind, k)
        part.data = <char *>self.arena.take(part.panels * part.panel_bytes)
        if bias is not None and n:
            part.bias = <float *>self.arena.take(n * sizeof(float))
            memcpy(part.bias, &bias[0], n * sizeof(float))
        stored.part, stored.memory = part[0], self.arena
        self.count += 1
        self.n += n
        self.k = k
        return stored

    def with_bias(self, const float[::1] bias):
        """The same packed matrices with another bias (n): an output layer that shares the token embedding."""
        cdef Weight other = Weight(self.arena, [], [])
        cdef int i
        if bias.shape[0] != self.n:
            raise FormatError(f"a bias of {bias.shape[0]} elements for {self.n} output features")
        free(other.parts)
        other.parts = <Linear *>calloc(max(self.count, 1), sizeof(Linear))
        if other.parts == NULL:
            raise MemoryError()
        memcpy(other.parts, self.parts, self.count * sizeof(Linear))
        for i in range(self.count):
            other.parts[i].bias = <float *>&bias[self.parts[i].column]
        other.count, other.n, other.k, other.own_bias = self.count, self.n, self.k, bias
        return other

    def unpack(self, int64_t row):
        """Row `row` of the whole matrix as (k) float32, as the products see it."""
        cdef int i
        cdef const cyg_kernels *table = kernels()
        cdef float[::1] out
        import numpy as np

        out = values = np.empty(self.k, np.float32)
        for i in range(self.count):
            if row < self.parts[i].column + self.parts[i].n:
                if self.k:
                    table.unpack_row(self.parts[i].kind, self.parts[i].data, self.k, row - self.parts[i].column, &out[0])
                return values
        raise IndexError(f"row {row} of a matrix with {self.n} rows")

    @property
    def kinds(self):
        """Kinds of the parts, in order."""
        names = {v: k for k, v in KINDS.items()}
        return [names[self.parts[i].kind] for i in range(self.count)]

    @property
    def nbytes(self):
        """Bytes that one product reads: packed panels and biases."""
        return sum(self.parts[i].panels * self.parts[i].panel_bytes + (self.parts[i].n * 4 if self.parts[i].bias != NULL else 0)
                   for i in range(self.count))


cdef cyg_basis basis_of(const Linear *parts, int count) noexcept nogil:
    """How activations must come to these parts: the one way of all that multiply with codes, else as they are."""
    cdef int i
    for i in range(count):
        if parts[i].kind >= CYG_I8:
            return CYG_HADAMARD if parts[i].kind == CYG_I8H else CYG_CODES
    return CYG_VALUES


cdef int64_t SHARE_ROWS = 112       # rows of a share when there are many: whole tiles of the kernels, within the second-level cache
cdef int64_t CACHE_BYTES = 3 << 18  # weight bytes of a share when there are many rows
cdef int64_t SHARE_BYTES = 1 << 14  # weight bytes of a share when there are few rows: some microseconds of reading


cdef inline int64_t _run_of(const Linear *part, int64_t row_blocks, int size) noexcept nogil:
    """Panels of a share.

    With one block of rows: enough bytes to be worth a claim, few enough that every member gets some. With more: as many as stay in the second-level cache
    while the rows pass by, few enough that the last shares do not leave a member idle for long.
    """
    if row_blocks == 1:
        return max(1, min(<int64_t>(SHARE_BYTES // max(part.panel_bytes, 1)) + 1, (part.panels + 2 * size - 1) // (2 * size)))
    return max(1, min(<int64_t>(CACHE_BYTES // max(part.panel_bytes, 1)), part.panels * row_blocks // (12 * size)))


cdef inline int64_t _shares_of(const Linear *part, int64_t row_blocks, int size) noexcept nogil:
    cdef int64_t run = _run_of(part, row_blocks, size)
    return (part.panels + run - 1) // run * row_blocks


cdef void product_stage(const cyg_kernels *table, team *members, int thread, const Linear *parts, int count, const Rows *rows, int64_t m,
                        float alpha, int accumulate, float *y, int64_t ldy) noexcept nogil:
    """A stage of its own: the caller's shares of y = alpha (x W^T + b) (+ y); every member of the team calls it.

    A share is a block of rows times a run of panels of one part; all blocks of rows pass by one run of panels before the next run.
    """
    cdef cyg_product share
    cdef int64_t row_blocks = (m + SHARE_ROWS - 1) // SHARE_ROWS, block_rows, run = 1, part_shares = 0, index, first = 0, total = 0
    cdef int i
    cdef const Linear *part = NULL
    if m == 0:
        return
    block_rows = min(m, SHARE_ROWS)
    for i in range(count):
        total += _shares_of(&parts[i], row_blocks, members.size)
    i = -1
    share.alpha, share.accumulate = alpha, accumulate
    share.ldx, share.ldy = rows.ldx, ldy
    while True:
        index = team_claim_near(members, thread, total)
        if index >= total:
            break
        if index < first:
            i, first, part_shares = -1, 0, 0
        while index >= first + part_shares:
            first += part_shares
            i += 1
            part = &parts[i]
            run, part_shares = _run_of(part, row_blocks, members.size), _shares_of(part, row_blocks, members.size)
            share.weight, share.n, share.k, share.bias = part.data, part.n, part.k, part.bias
        _share(table, part, rows, &share, (index - first) // row_blocks * run, run, (index - first) % row_blocks * block_rows, block_rows, m, y, ldy)
    team_finish(members, thread, total)


cdef inline void _share(const cyg_kernels *table, const Linear *part, const Rows *rows, cyg_product *share, int64_t panel, int64_t run,
                        int64_t row, int64_t block_rows, int64_t m, float *y, int64_t ldy) noexcept nogil:
    cdef int64_t groups = (part.k + CYG_GROUP - 1) // CYG_GROUP
    share.first_panel, share.last_panel = panel, min(panel + run, part.panels)
    share.m = min(block_rows, m - row)
    if share.m <= 0:
        return
    share.x = rows.x + row * rows.ldx
    if part.kind >= CYG_I8:
        share.q = rows.q + row * groups * CYG_GROUP
        share.q_scale = rows.scale + row * groups
        share.q_sum = rows.sum + row * groups
    share.y = y + row * ldy + part.column
    table.product[<int>part.kind](share)
