"""GGUF blocks to float32 in plain NumPy: the oracle for csrc/dequantize.c, written from the block layouts and not from its loops."""

import numpy as np

HALF = np.dtype("<f2")
NONLINEAR = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


def dequantize(name, raw):
    """The weights of whole blocks.

    Parameters
    ----------
    name : str
        ``F32``, ``F16``, ``BF16`` or a GGUF block type.
    raw : (n_blocks * block_bytes,) uint8

    Returns
    -------
    (n_blocks * block_size,) float32

    Examples
    --------
    >>> dequantize("F16", np.array([0x00, 0x3C, 0x00, 0xC0], np.uint8))
    array([ 1., -2.], dtype=float32)
    """
    raw = np.ascontiguousarray(raw)
    if name == "F32":
        return raw.view("<f4").copy()
    if name == "F16":
        return raw.view(HALF).astype(np.float32)
    if name == "BF16":
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    decode, block_bytes = _DECODERS[name]
    return decode(raw.reshape(-1, block_bytes)).reshape(-1)


def _half(blocks, offset):
    """The half-precision number at a byte offset of each block, (n, 1) float32."""
    return np.ascontiguousarray(blocks[:, offset : offset + 2]).view(HALF).astype(np.float32)


def _bits(values, width):
    """Split bytes (..., m) into their fields of `width` bits, lowest first: (..., 8 / width, m)."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)[:, None]
    return values[..., None, :] >> shifts & ((1 << width) - 1)


def _nibbles(packed):
    """Low nibbles of all bytes, then high nibbles: (n, m) -> (n, 2m)."""
    return _bits(packed, 4).reshape(-1, 2 * packed.shape[1])


def _fifth_bits(packed):
    """32 bits of four bytes, in order, as 0 or 16."""
    return np.unpackbits(np.ascontiguousarray(packed), axis=1, bitorder="little") << 4


def _q4_0(blocks):
    return (_nibbles(blocks[:, 2:]).astype(np.float32) - 8) * _half(blocks, 0)


def _q4_1(blocks):
    return _nibbles(blocks[:, 4:]).astype(np.float32) * _half(blocks, 0) + _half(blocks, 2)


def _q5_0(blocks):
    return ((_nibbles(blocks[:, 6:]) | _fifth_bits(blocks[:, 2:6])).astype(np.float32) - 16) * _half(blocks, 0)


def _q5_1(blocks):
    return (_nibbles(blocks[:, 8:]) | _fifth_bits(blocks[:, 4:8])).astype(np.float32) * _half(blocks, 0) + _half(blocks, 2)


def _q8_0(blocks):
    return blocks[:, 2:].view(np.int8).astype(np.float32) * _half(blocks, 0)


def _iq4_nl(blocks):
    return NONLINEAR[_nibbles(blocks[:, 2:])] * _half(blocks, 0)


def _iq4_xs(blocks):
    high = np.ascontiguousarray(blocks[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    low = _bits(blocks[:, 4:8], 4).swapaxes(1, 2).reshape(-1, 8)
    scales = _half(blocks, 0) * ((low | high << 4).astype(np.float32) - 32)
    codes = _bits(blocks[:, 8:].reshape(-1, 8, 16), 4).reshape(-1, 8, 32)
    return scales[..., None] * NONLINEAR[codes]


def _six_bit_scales(packed):
    """12 bytes (n, 12) -> eight scales and eight minimums of 6 bits, each (n, 8) float32."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=1)
    minimums = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=1)
    return scales.astype(np.float32), minimums.astype(np.float32)


def _scaled_groups(blocks, codes):
    """Codes (n, 8, 32) with the scales and minimums that Q4_K and Q5_K start with."""
    scales, minimums = _six_bit_scales(blocks[:, 4:16])
    return (_half(blocks, 0) * scales)[..., None] * codes.astype(np.float32) - (_half(blocks, 2) * minimums)[..., None]


def _q4_k(blocks):
    return _scaled_groups(blocks, _bits(blocks[:, 16:].reshape(-1, 4, 32), 4).reshape(-1, 8, 32))


def _q5_k(blocks):
    low = _bits(blocks[:, 48:].reshape(-1, 4, 32), 4).reshape(-1, 8, 32)
    return _scaled_groups(blocks, low | _bits(blocks[:, 16:48], 1) << 4)


def _two_bit_codes(packed):
    """64 bytes (n, 64) -> (n, 16, 16): each half of 32 bytes holds four runs of 32 codes, one a bit pair."""
    return _bits(packed.reshape(-1, 2, 32), 2).reshape(-1, 16, 16)


def _q2_k(blocks):
    scales, minimums = blocks[:, :16] & 15, blocks[:, :16] >> 4
    codes = _two_bit_codes(blocks[:, 16:80]).astype(np.float32)
    return (_half(blocks, 80) * scales)[..., None] * codes - (_half(blocks, 82) * minimums)[..., None]


def _q3_k(blocks):
    low = _bits(blocks[:, 96:104], 4).reshape(-1, 16)
    high = _bits(blocks[:, 104:108], 2).reshape(-1, 16)
    scales = (low | high << 4).astype(np.float32) - 32
    codes = _two_bit_codes(blocks[:, 32:96]) | _bits(blocks[:, :32], 1).reshape(-1, 16, 16) << 2
    return (_half(blocks, 108) * scales)[..., None] * (codes.astype(np.float32) - 4)


def _q6_k(blocks):
    low = _bits(blocks[:, :128].reshape(-1, 2, 64), 4).reshape(-1, 16, 16)
    high = _bits(blocks[:, 128:192].reshape(-1, 2, 32), 2).reshape(-1, 16, 16)
    scales = _half(blocks, 208) * blocks[:, 192:208].view(np.int8)
    return scales[..., None] * ((low | high << 4).astype(np.float32) - 32)


_DECODERS = {
    "Q4_0": (_q4_0, 18),
    "Q4_1": (_q4_1, 20),
    "Q5_0": (_q5_0, 22),
    "Q5_1": (_q5_1, 24),
    "Q8_0": (_q8_0, 34),
    "Q2_K": (_q2_k, 84),
    "Q3_K": (_q3_k, 110),
    "Q4_K": (_q4_k, 144),
    "Q5_K": (_q5_k, 176),
    "Q6_K": (_q6_k, 210),
    "IQ4_NL": (_iq4_nl, 18),
    "IQ4_XS": (_iq4_xs, 136),
}
