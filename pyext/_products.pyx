"""Packed matrix products on NumPy arrays, one thread, any instruction set (`isa`; None is the chosen one). csrc/cyg_kernels.h holds the formulas."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t

import numpy as np

from cygnet._core._kernels cimport (
    CYG_BF16, CYG_CODES, CYG_F16, CYG_F32, CYG_GROUP, CYG_HADAMARD, CYG_I4, CYG_I4M, CYG_I8, CYG_I8H, cyg_kernels, cyg_product, cyg_weight_kind,
    kernels_of,
)
from cygnet.errors import OptionError

KINDS = {"float32": CYG_F32, "float16": CYG_F16, "bfloat16": CYG_BF16, "int8": CYG_I8, "int8-hadamard": CYG_I8H, "int4": CYG_I4,
         "int4m": CYG_I4M}
GROUP = CYG_GROUP


cdef cyg_weight_kind kind_of(kind) except *:
    if kind not in KINDS:
        raise OptionError(f"weight kind {kind!r}: choose one of {', '.join(KINDS)}")
    return KINDS[kind]


cdef int check_shape(name, int64_t rows, int64_t columns, int64_t wanted_rows, int64_t wanted_columns) except -1:
    if rows != wanted_rows or columns != wanted_columns:
        raise OptionError(f"{name}: {rows} x {columns}, expected {wanted_rows} x {wanted_columns}")
    return 0


cdef const float *start_of(const float[:, :] rows) noexcept nogil:
    return &rows[0, 0] if rows.shape[0] and rows.shape[1] else NULL


cdef int64_t stride_of(const float[:, :] rows) noexcept nogil:
    """Distance of two rows in elements."""
    return rows.strides[0] // <int64_t>sizeof(float)


cdef int check_rows(const float[:, :] rows, name) except -1:
    if rows.shape[1] > 1 and rows.strides[1] != sizeof(float):
        raise OptionError(f"{name}: the elements of a row must lie side by side")
    return 0


cdef int check_packed(const cyg_kernels *table, cyg_weight_kind kind, const uint8_t[:, ::1] packed, int64_t n, int64_t k) except -1:
    if n < 0 or k < 0:
        raise OptionError(f"a weight of {n} x {k}")
    return check_shape("packed, panels x bytes", packed.shape[0], packed.shape[1], (n + table.nr - 1) // table.nr, table.panel_bytes(kind, k))


def panel_rows(isa=None):
    """Rows of the weight matrix in one panel."""
    return kernels_of(isa).nr


def panel_bytes(kind, k, isa=None):
    """Bytes of one panel of a weight with k columns."""
    return kernels_of(isa).panel_bytes(kind_of(kind), k)


def empty_panels(kind, n, k, isa=None):
    """Memory for the panels of an (n, k) weight: (panels, bytes) uint8, 64-byte aligned."""
    cdef const cyg_kernels *table = kernels_of(isa)
    panels, size = -(-n // table.nr), table.panel_bytes(kind_of(kind), k)
    memory = np.empty(panels * size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + panels * size].reshape(panels, size)


def pack(kind, const float[:, :] weight, uint8_t[:, ::1] out=None, *, isa=None):
    """Packs a float weight.

    Parameters
    ----------
    kind : "float32", "float16" or "bfloat16"
    weight : (N, K) float32
    out : (panels, bytes) uint8 from empty_panels, optional
    """
    cdef const cyg_kernels *table = kernels_of(isa)
    cdef cyg_weight_kind which = kind_of(kind)
    cdef int64_t n = weight.shape[0], k = weight.shape[1], panel, nr = table.nr
    if which not in (CYG_F32, CYG_F16, CYG_BF16):
        raise OptionError(f"weight kind {kind!r} is packed from codes: quantize_weights, then pack_codes")
    check_rows(weight, "weight")
    if out is None:
        out = empty_panels(kind, n, k, isa)
    check_packed(table, which, out, n, k)
    if k == 0:
        return np.asarray(out)
    with nogil:
        for panel in range(out.shape[0]):
            table.pack_float(which, &weight[panel * nr, 0], stride_of(weight), min(nr, n - panel * nr), k, &out[panel, 0])
    return np.asarray(out)


def quantize_weights(kind, const float[:, :] weight, *, isa=None):
    """Codes (N, K) uint8 (int8 bits for eight bits), scales and, for "int4m", minima (N, groups) float32, else None."""
    cdef const cyg_kernels *table = kernels_of(isa)
    cdef cyg_weight_kind which = kind_of(kind)
    cdef int64_t n = weight.shape[0], k = weight.shape[1], groups = (k + CYG_GROUP - 1) // CYG_GROUP
    if which < CYG_I8:
        raise OptionError(f"weight kind {kind!r} has no codes")
    check_rows(weight, "weight")
    cdef uint8_t[:, ::1] codes = np.empty((n, k), np.uint8)
    cdef float[:, ::1] scales = np.empty((n, groups), np.float32)
    cdef float[:, ::1] minima = np.empty((n, groups), np.float32) if which == CYG_I4M else None
    if n and k:
        with nogil:
            table.quantize_weights(which, start_of(weight), stride_of(weight), n, k, &codes[0, 0], &scales[0, 0],
                                   &minima[0, 0] if which == CYG_I4M else NULL)
    return np.asarray(codes), np.asarray(scales), None if minima is None else np.asarray(minima)


def pack_codes(kind, const uint8_t[:, ::1] codes, const float[:, ::1] scales, const float[:, ::1] minima=None, uint8_t[:, ::1] out=None, *, isa=None):
    """Packs codes (N, K), scales and minima (N, groups) as quantize_weights gives them."""
    cdef const cyg_kernels *table = kernels_of(isa)
    cdef cyg_weight_kind which = kind_of(kind)
    cdef int64_t n = codes.shape[0], k = codes.shape[1], groups = (k + CYG_GROUP - 1) // CYG_GROUP, panel, row, nr = table.nr
    if which < CYG_I8:
        raise OptionError(f"weight kind {kind!r} has no codes")
    if (minima is not None) != (which == CYG_I4M):
        raise OptionError(f"minima go with weight kind 'int4m' and no other, not {kind!r}")
    check_shape("scales", scales.shape[0], scales.shape[1], n, groups)
    if minima is not None:
        check_shape("minima", minima.shape[0], minima.shape[1], n, groups)
    if out is None:
        out = empty_panels(kind, n, k, isa)
    check_packed(table, which, out, n, k)
    if k == 0:
        return np.asarray(out)
    with nogil:
        for panel in range(out.shape[0]):
            row = panel * nr
            table.pack_codes(which, &codes[row, 0], &scales[row, 0], &minima[row, 0] if which == CYG_I4M else NULL, min(nr, n - row), k,
                             &out[panel, 0])
    return np.asarray(out)


def unpack_row(kind, const uint8_t[:, ::1] packed, int64_t n, int64_t k, int64_t row, *, isa=None):
    """Row `row` of a packed (n, k) weight: (k) float32."""
    cdef const cyg_kernels *table = kernels_of(isa)
    cdef cyg_weight_kind which = kind_of(kind)
    cdef float[::1] out = np.empty(k, np.float32)
    check_packed(table, which, packed, n, k)
    if not 0 <= row < n:
        raise OptionError(f"row {row} of {n}")
    if k:
        table.unpack_row(which, &packed[0, 0], k, row, &out[0])
    return np.asarray(out)


def quantize_rows(const float[:, :] x, *, bint hadamard=False, isa=None):
    """Activations, or the Hadamard transform of each full group, to int8 per group.

    Codes (M, K rounded up to a group) int8, scales and sums of codes (M, groups) float32 and int32.
    """
    cdef const cyg_kernels *table = kernels_of(isa)
    cdef int64_t m = x.shape[0], k = x.shape[1], groups = (k + CYG_GROUP - 1) // CYG_GROUP
    check_rows(x, "x")
    cdef int8_t[:, ::1] q = np.empty((m, groups * CYG_GROUP), np.int8)
    cdef float[:, ::1] scale = np.empty((m, groups), np.float32)
    cdef int32_t[:, ::1] sums = np.empty((m, groups), np.int32)
    if m and k:
        with nogil:
            table.quantize_rows(CYG_HADAMARD if hadamard else CYG_CODES, start_of(x), stride_of(x), m, k, &q[0, 0], &scale[0, 0], &sums[0, 0])
    return np.asarray(q), np.asarray(scale), np.asarray(sums)


def product(kind, const uint8_t[:, ::1] packed, int64_t n, int64_t k, x, *, const float[::1] bias=None, float alpha=1, bint accumulate=False,
            out=None, panels=None, isa=None):
    """out = alpha * (x W^T + bias), added to out if accumulate.

    Parameters
    ----------
    packed : (panels, bytes) uint8, the (n, k) weight
    x : (M, K) float32; for the integer kinds the three arrays of quantize_rows, with hadamard=True for "int8-hadamard"
    bias : (N) float32, optional
    out : (M, N) float32, optional
    panels : (first, last), optional
        Computes only the columns of these panels; the others are left alone.
    """
    cdef const cyg_kernels *table = kernels_of(isa)
    cdef cyg_weight_kind which = kind_of(kind)
    cdef int64_t groups = (k + CYG_GROUP - 1) // CYG_GROUP
    cdef const float[:, :] rows
    cdef const int8_t[:, ::1] q
    cdef const float[:, ::1] q_scale
    cdef const int32_t[:, ::1] q_sum
    cdef float[:, :] y
    cdef cyg_product share
    check_packed(table, which, packed, n, k)
    share.x, share.ldx, share.q, share.q_scale, share.q_sum, share.bias = NULL, 0, NULL, NULL, NULL, NULL
    if which in (CYG_F32, CYG_F16, CYG_BF16):
        rows = x
        check_shape("x", rows.shape[0], rows.shape[1], rows.shape[0], k)
        check_rows(rows, "x")
        share.m, share.x, share.ldx = rows.shape[0], start_of(rows), stride_of(rows)
    else:
        q, q_scale, q_sum = x
        share.m = q.shape[0]
        check_shape("codes of x", share.m, q.shape[1], share.m, groups * CYG_GROUP)
        check_shape("scales of x", q_scale.shape[0], q_scale.shape[1], share.m, groups)
        check_shape("sums of x", q_sum.shape[0], q_sum.shape[1], share.m, groups)
        if share.m and k:
            share.q, share.q_scale, share.q_sum = &q[0, 0], &q_scale[0, 0], &q_sum[0, 0]
    if out is None:
        if accumulate:
            raise OptionError("accumulate needs out, the array that is added to")
        out = np.zeros((share.m, n), np.float32)
    y = out
    check_shape("out", y.shape[0], y.shape[1], share.m, n)
    check_rows(y, "out")
    if bias is not None:
        check_shape("bias", 1, bias.shape[0], 1, n)
    share.first_panel, share.last_panel = (0, packed.shape[0]) if panels is None else panels
    if not 0 <= share.first_panel <= share.last_panel <= packed.shape[0]:
        raise OptionError(f"panels {panels} of {packed.shape[0]}")
    share.n, share.k, share.alpha, share.accumulate, share.ldy = n, k, alpha, accumulate, stride_of(y)
    if share.m and n:
        share.weight, share.y = &packed[0, 0] if k else NULL, &y[0, 0]
        if bias is not None:
            share.bias = &bias[0]
        with nogil:
            table.product[<int>which](&share)
    return out
