"""From float32 to the stored types that `cygnet convert` writes: half precision and GGUF's 8- and 4-bit blocks.

Layout of the blocks: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Q8_0 holds a float16 scale and 32 signed bytes; Q4_1 a float16
scale, a float16 minimum and 16 bytes, whose low halves are elements 0 to 15 and whose high halves are 16 to 31.
"""

import numpy as np

from cygnet.errors import OptionError
from cygnet.formats.tensor import Tensor, stored_bytes
from cygnet.reference.quantization import to_bfloat16, to_float16

BLOCK = 32
# Elements encoded at a time, so that no tensor is held in float32 as a whole.
CHUNK_ELEMENTS = 1 << 22


def encode_q8_0(x):
    """(n, 32) float32 to (n, 34) uint8; the largest magnitude of a block becomes 127."""
    scale = (np.abs(x).max(axis=1, keepdims=True) / 127).astype(np.float16)
    codes = np.rint(x * _inverse(scale)).clip(-127, 127).astype(np.int8)
    return np.concatenate([scale.view(np.uint8), codes.view(np.uint8)], axis=1)


def encode_q4_1(x):
    """(n, 32) float32 to (n, 20) uint8; a block's range from its least to its largest value is cut into 15 steps."""
    low = x.min(axis=1, keepdims=True).astype(np.float16)
    scale = ((x.max(axis=1, keepdims=True) - low.astype(np.float32)) / 15).astype(np.float16)
    codes = np.rint((x - low.astype(np.float32)) * _inverse(scale)).clip(0, 15).astype(np.uint8)
    return np.concatenate([scale.view(np.uint8), low.view(np.uint8), codes[:, :16] | codes[:, 16:] << 4], axis=1)


def encode_f16(x):
    """Bits of float16; a value beyond its range is refused instead of becoming infinite."""
    bits = to_float16(x)
    if (np.isfinite(x) & (bits & 0x7C00 == 0x7C00)).any():
        raise OptionError(f"a value of {np.abs(x).max():g} is beyond float16 (65504): convert to bfloat16 instead")
    return bits


def _inverse(scale):
    wide = scale.astype(np.float32)
    return np.divide(1, wide, out=np.zeros_like(wide), where=wide != 0)


ENCODERS = {
    "F32": lambda x: np.ascontiguousarray(x, "<f4").view(np.uint8),
    "F16": lambda x: np.ascontiguousarray(encode_f16(x), "<u2").view(np.uint8),
    "BF16": lambda x: np.ascontiguousarray(to_bfloat16(x), "<u2").view(np.uint8),
    "Q8_0": lambda x: encode_q8_0(x.reshape(-1, BLOCK)),
    "Q4_1": lambda x: encode_q4_1(x.reshape(-1, BLOCK)),
}


def encoded(tensor, dtype):
    """The same values under another stored type, encoded when its bytes are asked for.

    Parameters
    ----------
    tensor : Tensor
        With at least one axis; the last is a multiple of 32 for block types.
    dtype : str
        A key of ENCODERS.

    Examples
    --------
    >>> source = Tensor("w", "F32", (1, 32), lambda: np.arange(32, dtype=np.float32).view(np.uint8))
    >>> encoded(source, "Q8_0").to_float32()[0, -1].item()
    31.0
    """

    def read():
        out = np.empty(stored_bytes(dtype, tensor.shape), np.uint8)
        row = stored_bytes(dtype, tensor.shape[1:]) if len(tensor.shape) > 1 else stored_bytes(dtype, (1,))
        step = max(1, CHUNK_ELEMENTS * tensor.shape[0] // max(1, int(np.prod(tensor.shape))))
        for first in range(0, tensor.shape[0], step):
            rows = slice(first, min(first + step, tensor.shape[0]))
            out[rows.start * row : rows.stop * row] = ENCODERS[dtype](tensor.to_float32(rows)).reshape(-1)
        tensor.release()
        return out

    return Tensor(tensor.name, dtype, tensor.shape, read)
