"""Half-precision and integer number formats in plain NumPy: how weights and activations lose bits, and what comes back.

Groups of GROUP numbers along the last axis share one scale; a last group that is not full counts as padded with zeros.
"""

import numpy as np

GROUP = 32


def to_bfloat16(x):
    """Bits (uint16) of x rounded to bfloat16, to nearest even; NaN stays NaN."""
    x = np.ascontiguousarray(x, np.float32)
    bits = x.view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), (bits >> 16).astype(np.uint16) | np.uint16(0x40), rounded)


def from_bfloat16(bits):
    """float32 of bfloat16 bits (uint16)."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def to_float16(x):
    """Bits (uint16) of x rounded to float16, to nearest even; 65520 and above become infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x, np.float32).astype(np.float16).view(np.uint16)


def from_float16(bits):
    """float32 of float16 bits (uint16)."""
    return np.asarray(bits, np.uint16).view(np.float16).astype(np.float32)


def _groups(x):
    x = np.asarray(x, np.float32)
    missing = -x.shape[-1] % GROUP
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    return padded.reshape(*x.shape[:-1], padded.shape[-1] // GROUP, GROUP)


def _ungroup(groups, width):
    return groups.reshape(*groups.shape[:-2], -1)[..., :width]


def hadamard(x):
    """The orthonormal Hadamard transform of each full group of x (..., K), its own inverse; a last group that is not full stays as it is.

    Products do not change where both sides are transformed, and a number that stands out no longer makes its whole group coarse (QuaRot, Ashkboos et
    al. 2024, https://arxiv.org/abs/2404.00456): 8-bit weights made at load lie in this basis.

    Examples
    --------
    >>> x = np.zeros(GROUP, np.float32)
    >>> x[3] = 8
    >>> (hadamard(x)[:6] * 2**0.5).round(4).tolist(), hadamard(hadamard(x))[:6].round(4).tolist()
    ([2.0, -2.0, -2.0, 2.0, 2.0, -2.0], [0.0, 0.0, 0.0, 8.0, 0.0, 0.0])
    """
    x = np.array(x, np.float32)
    full = x.shape[-1] // GROUP * GROUP
    groups = x[..., :full].reshape(-1, GROUP)
    for stride in (16, 8, 4, 2, 1):
        pairs = groups.reshape(-1, GROUP // (2 * stride), 2, stride)
        groups = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], 2).reshape(-1, GROUP)
    x[..., :full] = (groups * np.float32(GROUP**-0.5)).reshape(x[..., :full].shape)
    return x


def quantize_int8(x):
    """x (..., K) to codes (..., K) int8 in -127..127 and scales (..., ceil(K / GROUP)) float32: x = scale * code.

    scale = max|x| / 127, code = x * (127 / max|x|) rounded to nearest even. A group with nothing above 2^-100 counts as zero; NaN or infinity in one
    makes its scale NaN.
    """
    x = np.asarray(x, np.float32)
    groups = _groups(x)
    bad = ~np.isfinite(groups).all(-1)
    groups = np.where(bad[..., None], 0, groups).astype(np.float32)
    largest = np.abs(groups).max(-1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        codes = np.where(largest[..., None] > 2.0**-100, np.rint(groups * (np.float32(127) / largest)[..., None]), 0).astype(np.int8)
    scales = np.where(largest > 2.0**-100, largest * np.float32(1 / 127), np.float32(0))
    return _ungroup(codes, x.shape[-1]), np.where(bad, np.float32(np.nan), scales)


def dequantize_int8(codes, scales):
    """float32 (..., K) of codes (..., K) int8 and scales (..., groups)."""
    codes = np.asarray(codes)
    return (codes * np.repeat(np.asarray(scales, np.float32), GROUP, -1)[..., : codes.shape[-1]]).astype(np.float32)


def quantize_int4(x, *, minimum=False):
    """x (..., K) to codes (..., K) uint8 in 0..15, scales and minima (..., groups) float32, the latter None without `minimum`.

    Without: x = scale * (code - 8), the value of largest magnitude becomes code 0, so that it is kept exactly. With: x = scale * code + minimum,
    scale = (max - min) / 15. Scales and minima are float16 numbers.
    """
    x = np.asarray(x, np.float32)
    groups = _groups(x)

    def half(a):
        return a.astype(np.float16).astype(np.float32)

    if minimum:
        low = half(groups.min(-1))
        scales = half((groups.max(-1) - low) / np.float32(15))
        shifted = groups - low[..., None]
    else:
        low = None
        largest = np.take_along_axis(groups, np.abs(groups).argmax(-1)[..., None], -1)[..., 0]
        scales = half(largest / np.float32(-8))
        shifted = groups
    with np.errstate(divide="ignore", invalid="ignore"):
        codes = np.where(scales[..., None] != 0, np.rint(shifted / scales[..., None]), 0)
    codes = np.clip(codes + (0 if minimum else 8), 0, 15).astype(np.uint8)
    return _ungroup(codes, x.shape[-1]), scales, low


def dequantize_int4(codes, scales, minima=None):
    """float32 (..., K) of codes (..., K) in 0..15, scales and, where there are any, minima (..., groups)."""
    codes = np.asarray(codes)

    def spread(a):
        return np.repeat(np.asarray(a, np.float32), GROUP, -1)[..., : codes.shape[-1]]

    if minima is None:
        return ((codes.astype(np.float32) - 8) * spread(scales)).astype(np.float32)
    return (codes.astype(np.float32) * spread(scales) + spread(minima)).astype(np.float32)
