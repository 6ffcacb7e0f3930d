"""From stored rows to packed weights, by all threads, many matrices in one job.

Stored block types go into integer panels code by code where that loses nothing; everything else is widened to float32 row by row and quantised or
narrowed. Nothing here needs the interpreter: Python goes on in other threads while a model is packed.
"""

from libc.stdint cimport int8_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc

from cygnet._core._dequantize cimport cyg_quant_type_find
from cygnet._core._kernels cimport CYG_GROUP, CYG_I4, CYG_I4M, CYG_I8, cyg_kernels, cyg_weight_kind, kernels
from cygnet._core._threads cimport Job, team, team_claim

from cygnet.errors import FormatError

cdef int64_t CLAIM = 8  # panels at a time: neighbours, so that a member reads and writes runs of memory


cdef class Unpacked:
    """One matrix that waits to be packed.

    Parameters
    ----------
    dtype : str
        How its rows are stored: "F32", "Q4_1" ...
    k : int
        Elements of a row, whole blocks.
    data : (bytes,) uint8
    rows : (n,) int64 or None
    n : int
        How many rows are wanted.
    """

    def __init__(self, str dtype, int64_t n, int64_t k, const uint8_t[::1] data, const int64_t[::1] rows):
        cdef int64_t stored
        name = dtype.encode()
        self.type = cyg_quant_type_find(name)
        if self.type == NULL:
            raise FormatError(f"weights of type {dtype} cannot be multiplied")
        if k % self.type.block_size:
            raise FormatError(f"rows of {k} weights are not whole {dtype} blocks of {self.type.block_size}")
        stored = data.shape[0] // _row_bytes(self.type, k) if k else n
        if (rows is None and stored < n) or (rows is not None and (rows.shape[0] != n or (n and not 0 <= _least(rows) <= _most(rows) < stored))):
            raise FormatError(f"{n} rows are wanted of a matrix that stores {stored}")
        self.data, self.rows = data, rows

    @property
    def nbytes(self):
        """Stored bytes it reads."""
        return self.part.n * _row_bytes(self.type, self.part.k)


cdef inline size_t _row_bytes(const cyg_quant_type *type, int64_t k) noexcept nogil:
    return <size_t>(k // type.block_size) * type.block_bytes


cdef int64_t _least(const int64_t[::1] v) noexcept:
    cdef int64_t i, best = v[0]
    for i in range(v.shape[0]):
        best = min(best, v[i])
    return best


cdef int64_t _most(const int64_t[::1] v) noexcept:
    cdef int64_t i, best = v[0]
    for i in range(v.shape[0]):
        best = max(best, v[i])
    return best


cdef struct Matrix:
    Linear part
    const cyg_quant_type *type
    const uint8_t *data
    const int64_t *rows
    bint direct          # stored blocks become codes without loss
    int64_t first_panel  # counted over all matrices of the job


cdef struct Work:
    const cyg_kernels *table
    team *members
    const Matrix *matrices
    int64_t panels
    int64_t longest  # elements of the longest row
    int failed


cdef struct Buffers:
    # One panel on its way.
    float *values
    uint8_t *codes
    float *scales
    float *minima


cdef bint _direct(cyg_weight_kind kind, const cyg_quant_type *type) noexcept nogil:
    if kind == CYG_I8:
        return type.unpack_int8 != NULL
    if kind == CYG_I4M:
        return type.unpack_int4 != NULL
    return kind == CYG_I4 and type.unpack_int4 != NULL and type.name[0] == b"Q" and type.name[3] == b"0" and type.name[1] == b"4"


cdef inline const uint8_t *_row(const Matrix *m, int64_t row) noexcept nogil:
    return m.data + (m.rows[row] if m.rows != NULL else row) * _row_bytes(m.type, m.part.k)


cdef void _pack_panel(const cyg_kernels *table, const Matrix *m, int64_t panel, const Buffers *b) noexcept nogil:
    cdef const Linear *part = &m.part
    cdef int64_t k = part.k, groups = (k + CYG_GROUP - 1) // CYG_GROUP, row, rows = min(table.nr, part.n - panel * table.nr)
    cdef size_t blocks = k // m.type.block_size
    cdef char *out = part.data + panel * part.panel_bytes
    cdef const uint8_t *stored
    for row in range(rows):
        stored = _row(m, panel * table.nr + row)
        if not m.direct:
            m.type.dequantize(stored, blocks, b.values + row * k)
        elif part.kind == CYG_I8:
            m.type.unpack_int8(stored, blocks, <int8_t *>b.codes + row * k, b.scales + row * groups)
        else:
            m.type.unpack_int4(stored, blocks, b.codes + row * k, b.scales + row * groups, b.minima + row * groups)
    if part.kind < CYG_I8:
        table.pack_float(part.kind, b.values, k, rows, k, out)
        return
    if not m.direct:
        table.quantize_weights(part.kind, b.values, k, rows, k, b.codes, b.scales, b.minima)
    table.pack_codes(part.kind, b.codes, b.scales, b.minima, rows, k, out)


cdef void _pack(void *argument, int thread) noexcept nogil:
    """Packs panels until none is left; claims ascend, so that one walk over the matrices finds them all."""
    cdef Work *work = <Work *>argument
    cdef size_t most = work.table.nr * work.longest, groups = work.table.nr * ((work.longest + CYG_GROUP - 1) // CYG_GROUP)
    cdef Buffers b
    cdef const Matrix *m = work.matrices
    cdef int64_t first, panel
    b.values = <float *>malloc((most + 1) * sizeof(float))
    b.codes = <uint8_t *>malloc(most + 1)
    b.scales = <float *>malloc((groups + 1) * sizeof(float))
    b.minima = <float *>malloc((groups + 1) * sizeof(float))
    if b.values == NULL or b.codes == NULL or b.scales == NULL or b.minima == NULL:
        work.failed = 1
    while not work.failed:
        first = team_claim(work.members, thread, CLAIM, work.panels)
        if first >= work.panels:
            break
        for panel in range(first, min(first + CLAIM, work.panels)):
            while panel >= m.first_panel + m.part.panels:
                m += 1
            _pack_panel(work.table, m, panel - m.first_panel, &b)
    free(b.values)
    free(b.codes)
    free(b.scales)
    free(b.minima)


def pack(list waiting, int threads):
    """Packs a list of Unpacked."""
    cdef Matrix *matrices = <Matrix *>calloc(len(waiting) + 1, sizeof(Matrix))
    cdef Matrix *m = matrices
    cdef Work work
    cdef Unpacked u
    cdef Job job
    if matrices == NULL:
        raise MemoryError
    work.table, work.matrices, work.panels, work.longest, work.failed = kernels(), matrices, 0, 0, 0
    try:
        for u in waiting:
            m.part, m.type, m.first_panel = u.part, u.type, work.panels
            m.data = &u.data[0] if u.data.shape[0] else NULL
            m.rows = &u.rows[0] if u.rows is not None and u.rows.shape[0] else NULL
            m.direct = _direct(u.part.kind, u.type)
            work.panels += u.part.panels
            work.longest = max(work.longest, u.part.k)
            m += 1
        with Job(threads) as job:
            work.members = job.members
            job.run(_pack, &work, NULL)
    finally:
        free(matrices)
    if work.failed:
        raise MemoryError("cannot allocate the packing buffers")
