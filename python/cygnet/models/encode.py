"""From stored tensors to the types that `cygnet convert` writes: half precision and GGUF's 8- and 4-bit blocks.

Codes and scales come from the kernels of loading: a file of 4-bit blocks loads to the weights that weights="int4" makes of its source. 8-bit blocks
hold plain codes, not those of the Hadamard transform (csrc/simd/hadamard.inl.c) that weights="int8" makes, which lose a little less.
Layout of the blocks: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Q8_0 holds a float16 scale and 32 signed bytes; Q4_1 a float16
scale, a float16 minimum and 16 bytes, whose low halves are elements 0 to 15 and whose high halves are 16 to 31.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from cygnet._core._dequantize import unpack_int4, unpack_int8
from cygnet._core._products import quantize_weights
from cygnet.errors import OptionError
from cygnet.formats.tensor import Tensor, stored_bytes
from cygnet.reference.quantization import to_bfloat16, to_float16

BLOCK = 32
# Elements encoded at a time, so that no tensor is held in float32 as a whole.
CHUNK_ELEMENTS = 1 << 22


# Blocks whose codes an engine takes as they are, by the type they become.
UNPACKED = {"Q8_0": ("Q5_0",), "Q4_1": ("Q4_0", "Q4_K")}


def blocks_q8_0(codes, scales):
    """(n * 32) int8 codes and (n) float32 scales to (n, 34) uint8."""
    return np.concatenate([_half(scales), codes.reshape(-1, BLOCK).view(np.uint8)], axis=1)


def blocks_q4_1(codes, scales, minima):
    """(n * 32) codes of 0 to 15, (n) float32 scales and minima to (n, 20) uint8."""
    codes = codes.reshape(-1, BLOCK)
    return np.concatenate([_half(scales), _half(minima), codes[:, :16] | codes[:, 16:] << 4], axis=1)


def encode_q8_0(x):
    """Rows (..., K) float32 to blocks, K a multiple of 32."""
    codes, scales, _ = quantize_weights("int8", x.reshape(-1, x.shape[-1]))
    return blocks_q8_0(codes, scales)


def encode_q4_1(x):
    """Rows (..., K) float32 to blocks, K a multiple of 32."""
    return blocks_q4_1(*quantize_weights("int4m", x.reshape(-1, x.shape[-1])))


def encode_f16(x):
    """Bits of float16; a value beyond its range is refused instead of becoming infinite."""
    bits = to_float16(x)
    if (np.isfinite(x) & (bits & 0x7C00 == 0x7C00)).any():
        raise OptionError(f"a value of {np.abs(x).max():g} is beyond float16 (65504): convert to bfloat16 instead")
    return bits


def _half(values):
    """The bytes of float16 numbers, a row each."""
    return values.reshape(-1, 1).astype("<f2").view(np.uint8)


ENCODERS = {
    "F32": lambda x: np.ascontiguousarray(x, "<f4").view(np.uint8),
    "F16": lambda x: np.ascontiguousarray(encode_f16(x), "<u2").view(np.uint8),
    "BF16": lambda x: np.ascontiguousarray(to_bfloat16(x), "<u2").view(np.uint8),
    "Q8_0": encode_q8_0,
    "Q4_1": encode_q4_1,
}


def encoded(tensor, dtype, threads=1):
    """The same values under another stored type, encoded when its bytes are asked for.

    Parameters
    ----------
    tensor : Tensor
        With at least one axis; the last is a multiple of 32 for block types.
    dtype : str
        A key of ENCODERS.
    threads : int

    Examples
    --------
    >>> source = Tensor("w", "F32", (1, 32), lambda: np.arange(32, dtype=np.float32).view(np.uint8))
    >>> encoded(source, "Q8_0").to_float32()[0, -1].item()
    31.0
    """

    def read():
        out = np.empty(stored_bytes(dtype, tensor.shape), np.uint8)
        row = stored_bytes(dtype, tensor.shape[1:]) if len(tensor.shape) > 1 else stored_bytes(dtype, (1,))
        count = tensor.shape[0]
        step = max(1, min(CHUNK_ELEMENTS * count // max(1, int(np.prod(tensor.shape))), -(-count // threads)))

        def encode(first):
            last = min(first + step, count)
            out[first * row : last * row] = _encode_rows(tensor, dtype, first, last).reshape(-1)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(encode, range(0, count, step)))
        tensor.release()
        return out

    return Tensor(tensor.name, dtype, tensor.shape, read)


def _encode_rows(tensor, dtype, first, last):
    if tensor.dtype in UNPACKED.get(dtype, ()):
        raw = tensor.raw_rows(first, last)
        groups = (last - first) * int(np.prod(tensor.shape[1:])) // BLOCK
        return blocks_q8_0(*unpack_int8(tensor.dtype, raw, groups)) if dtype == "Q8_0" else blocks_q4_1(*unpack_int4(tensor.dtype, raw, groups))
    return ENCODERS[dtype](tensor.to_float32(slice(first, last)))
