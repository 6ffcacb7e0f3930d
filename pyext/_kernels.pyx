"""Kernel tables on NumPy arrays: the choice of the instruction set, and each kernel as a Python function with an `isa` argument."""

import os

from cygnet.errors import OptionError


cdef extern from "cyg_cpu.h" nogil:
    const char *const *cyg_isa_names()
    int cyg_isa_usable(const char *name)
    const cyg_kernels *cyg_isa_table(const char *name)


def isa_names():
    """Names of the instruction sets that this build has and this CPU and operating system can run, best first."""
    cdef const char *const *name = cyg_isa_names()
    usable = []
    while name[0] != NULL:
        if cyg_isa_usable(name[0]):
            usable.append(name[0].decode())
        name += 1
    return usable


cdef const cyg_kernels *table_named(name, source) except NULL:
    cdef const cyg_kernels *table
    encoded = str(name).strip().lower().encode()
    table = cyg_isa_table(encoded)
    if table == NULL:
        raise OptionError(f"{source} {name!r} cannot run here; this build and CPU can run: {', '.join(isa_names())}")
    return table


cdef const cyg_kernels *choose() except NULL:
    name = os.environ.get("CYGNET_ISA", "").strip()
    return table_named(name, "CYGNET_ISA") if name else cyg_isa_table(NULL)


cdef const cyg_kernels *chosen = choose()


cdef const cyg_kernels *kernels() noexcept nogil:
    return chosen


cdef const cyg_kernels *kernels_of(isa) except NULL:
    return chosen if isa is None else table_named(isa, "isa")


def isa_name():
    """Name of the instruction set chosen at import."""
    return chosen.name.decode()


def isa_width(isa=None):
    """Floats in a vector of an instruction set."""
    return kernels_of(isa).width


# ---- kernels on arrays ------------------------------------------------------------------------------------------------------------------
# Matrices are float32 with rows contiguous along the last axis; `out` may be the input where the kernel works in place.

cdef enum:
    FLOAT_BYTES = 4

ACTIVATIONS = ("identity", "relu", "gelu", "gelu_tanh", "gelu_quick", "silu", "tanh", "sigmoid", "relu2")


cdef cyg_activation activation_named(name) except *:
    try:
        return <cyg_activation> <int> ACTIVATIONS.index(name)
    except ValueError:
        raise OptionError(f"activation {name!r} is not known: {', '.join(ACTIVATIONS)}") from None


cdef int64_t row_stride(const float[:, :] x, what) except -1:
    """Elements from row to row; the rows themselves must be contiguous and follow one another upwards."""
    if x.shape[1] > 1 and x.strides[1] != FLOAT_BYTES:
        raise OptionError(f"{what}: rows must be contiguous along the last axis")
    if x.shape[0] > 1 and (x.strides[0] < 0 or x.strides[0] % FLOAT_BYTES):
        raise OptionError(f"{what}: rows must follow one another at a multiple of four bytes")
    return x.strides[0] // FLOAT_BYTES if x.shape[0] > 1 else x.shape[1]


cdef int want(bint condition, message) except -1:
    if not condition:
        raise OptionError(message)
    return 0


cdef const float *vector(const float[::1] v, int64_t n, what) except? NULL:
    """Address of a vector of n elements, NULL for None."""
    if v is None:
        return NULL
    want(v.shape[0] == n, f"{what} has {v.shape[0]} elements, the rows have {n}")
    if n == 0:
        return NULL
    return &v[0]


cdef const float *base(const float[:, :] x) noexcept:
    if x.shape[0] == 0 or x.shape[1] == 0:
        return NULL
    return &x[0, 0]


def layer_norm(const float[:, :] x, const float[::1] weight, const float[::1] bias, float eps, float[:, :] out, isa=None):
    """out = (x - mean) / sqrt(var + eps) * weight + bias, each row of (M, D); weight and bias (D) or None."""
    want(x.shape[0] == out.shape[0] and x.shape[1] == out.shape[1], "layer_norm: x and out differ in shape")
    kernels_of(isa).layer_norm(base(x), row_stride(x, "x"), x.shape[0], x.shape[1], vector(weight, x.shape[1], "weight"),
                               vector(bias, x.shape[1], "bias"), eps, <float *> base(out), row_stride(out, "out"))


def rms_norm(const float[:, :] x, const float[::1] weight, float eps, float[:, :] out, isa=None):
    """out = x / sqrt(mean(x^2) + eps) * weight, each row of (M, D); weight (D) or None."""
    want(x.shape[0] == out.shape[0] and x.shape[1] == out.shape[1], "rms_norm: x and out differ in shape")
    kernels_of(isa).rms_norm(base(x), row_stride(x, "x"), x.shape[0], x.shape[1], vector(weight, x.shape[1], "weight"), eps,
                             <float *> base(out), row_stride(out, "out"))


def activate(activation, const float[::1] x, float[::1] out, isa=None):
    """out = f(x) elementwise, (N)."""
    want(x.shape[0] == out.shape[0], "activate: x and out differ in length")
    if x.shape[0]:
        kernels_of(isa).activate(activation_named(activation), &x[0], x.shape[0], &out[0])


def gate(activation, const float[:, :] gate, const float[:, :] up, float[:, :] out, isa=None):
    """out = f(gate) * up, (M, D)."""
    want(gate.shape[0] == up.shape[0] == out.shape[0] and gate.shape[1] == up.shape[1] == out.shape[1], "gate: gate, up and out differ in shape")
    kernels_of(isa).gate(activation_named(activation), base(gate), row_stride(gate, "gate"), base(up), row_stride(up, "up"), gate.shape[0],
                         gate.shape[1], <float *> base(out), row_stride(out, "out"))


def rotate(float[:, :, :] x, const float[:, ::1] cos, const float[:, ::1] sin, bint interleaved, isa=None):
    """Rotates the first 2 R features of each head of x (T, H, D) in place by the token's cos, sin (T, R)."""
    cdef const cyg_kernels *table = kernels_of(isa)
    cdef int64_t half = cos.shape[1], stride = x.strides[1] // FLOAT_BYTES, token
    want(cos.shape[0] == sin.shape[0] == x.shape[0] and cos.shape[1] == sin.shape[1] and 2 * half <= x.shape[2],
         "rotate: cos and sin need one row a token and one entry a pair of features")
    want(x.shape[2] <= 1 or x.strides[2] == FLOAT_BYTES, "rotate: x must be contiguous along the last axis")
    want(x.strides[1] % FLOAT_BYTES == 0, "rotate: strides must be multiples of four bytes")
    if half == 0 or x.shape[1] == 0:
        return
    with nogil:
        for token in range(x.shape[0]):
            table.rotate(&x[token, 0, 0], x.shape[1], stride, half, interleaved, &cos[token, 0], &sin[token, 0])


def axpy(float a, const float[::1] x, float[::1] y, isa=None):
    """y += a * x, (N)."""
    want(x.shape[0] == y.shape[0], "axpy: x and y differ in length")
    if x.shape[0]:
        kernels_of(isa).axpy(x.shape[0], a, &x[0], &y[0])


def multiply(const float[::1] x, float[::1] y, isa=None):
    """y *= x, (N)."""
    want(x.shape[0] == y.shape[0], "multiply: x and y differ in length")
    if x.shape[0]:
        kernels_of(isa).multiply(x.shape[0], &x[0], &y[0])


def softmax(float[:, :] x, const uint8_t[:, ::1] mask=None, isa=None):
    """Softmax of each row of x (M, N) in place, over the entries where mask (M, N) is nonzero."""
    cdef const uint8_t *allowed = NULL
    if mask is not None:
        want(mask.shape[0] == x.shape[0] and mask.shape[1] == x.shape[1], "softmax: x and mask differ in shape")
        if mask.shape[0] and mask.shape[1]:
            allowed = &mask[0, 0]
    kernels_of(isa).softmax(<float *> base(x), row_stride(x, "x"), allowed, x.shape[1], x.shape[0], x.shape[1])


def log_softmax(float[:, :] x, isa=None):
    """x - log(sum(exp(x))) of each row of x (M, N) in place."""
    kernels_of(isa).log_softmax(<float *> base(x), row_stride(x, "x"), x.shape[0], x.shape[1])


def softcap(float cap, float[::1] x, isa=None):
    """x = cap * tanh(x / cap) in place, (N)."""
    if x.shape[0]:
        kernels_of(isa).softcap(x.shape[0], cap, &x[0])


def argmax(const float[::1] x, isa=None):
    """Index of the largest element of x (N), the first of equals; NaN never wins; -1 if there is none."""
    if x.shape[0] == 0:
        return -1
    return kernels_of(isa).argmax(x.shape[0], &x[0])


def widen(kind, const uint16_t[::1] x, float[::1] out, isa=None):
    """out = float32 of the bits x (N) of `kind`, float16 or bfloat16."""
    want(x.shape[0] == out.shape[0], "widen: x and out differ in length")
    want(kind in ("float16", "bfloat16"), f"widen: kind {kind!r} is neither float16 nor bfloat16")
    if x.shape[0] and kind == "float16":
        kernels_of(isa).f16_to_f32(&x[0], x.shape[0], &out[0])
    elif x.shape[0]:
        kernels_of(isa).bf16_to_f32(&x[0], x.shape[0], &out[0])


def narrow(kind, const float[::1] x, uint16_t[::1] out, isa=None):
    """out = bits of x (N) rounded to `kind`, float16 or bfloat16, to nearest even."""
    want(x.shape[0] == out.shape[0], "narrow: x and out differ in length")
    want(kind in ("float16", "bfloat16"), f"narrow: kind {kind!r} is neither float16 nor bfloat16")
    if x.shape[0] and kind == "float16":
        kernels_of(isa).f32_to_f16(&x[0], x.shape[0], &out[0])
    elif x.shape[0]:
        kernels_of(isa).f32_to_bf16(&x[0], x.shape[0], &out[0])
