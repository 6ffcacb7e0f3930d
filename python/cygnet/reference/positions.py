"""Position tables: sinusoidal embeddings, rotary frequencies and their scalings, ALiBi slopes, relative-position buckets.

They are made once a model, so NumPy is fast enough: the engine and cygnet.functional use these very functions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cygnet.errors import OptionError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from cygnet.architectures.spec import RopeScaling


def sinusoidal_positions(length: int, dim: int, layout: str = "interleaved", padding_idx: int | None = None) -> np.ndarray:
    """Table (length, dim) float32 of sines and cosines of position * frequency (Vaswani et al. 2017, section 3.5).

    Layouts: "interleaved", even columns sine and odd columns cosine, frequencies 10000^(-2i/dim); "halves", the same frequencies, all sines
    first (Marian, Pegasus); "fairseq", halves with frequencies 10000^(-i/(dim/2 - 1)) (M2M-100). Row `padding_idx` becomes zeros.
    """
    if layout not in ("interleaved", "halves", "fairseq"):
        raise OptionError(f"layout {layout!r} of sinusoidal positions is not known: interleaved, halves or fairseq")
    sines = dim // 2 if layout == "fairseq" else (dim + 1) // 2
    steps = np.arange(sines, dtype=np.float64)
    exponent = steps / max(sines - 1, 1) if layout == "fairseq" else 2 * steps / dim
    angle = np.arange(length, dtype=np.float64)[:, None] * 10000.0**-exponent
    table = np.zeros((length, dim))
    if layout == "interleaved":
        table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle[:, : dim // 2])
    else:
        table[:, :sines], table[:, sines : sines + dim // 2] = np.sin(angle), np.cos(angle[:, : dim // 2])
    if padding_idx is not None:
        table[padding_idx] = 0
    return table.astype(np.float32)


def rope_frequencies(
    dim: int,
    theta: float = 10000.0,
    scaling: RopeScaling | None = None,
    *,
    max_positions: int | None = None,
    sequence_length: int | None = None,
) -> tuple[np.ndarray, float]:
    """Inverse frequencies (dim / 2) float64 of rotary positions, and the factor by which cos and sin are multiplied.

    `scaling` has the fields of cygnet.architectures.spec.RopeScaling; `max_positions` is the model's own limit and `sequence_length` the length
    of the sequence at hand, which dynamic and longrope scaling depend on. Angles are position * inverse frequency.
    """
    if dim % 2:
        raise OptionError(f"rotary positions need an even number of features, not {dim}")
    kind = "default" if scaling is None else scaling.kind
    if kind not in SCALINGS:
        raise OptionError(f"rotary scaling {kind!r} is not known: {', '.join(SCALINGS)}")
    return SCALINGS[kind](dim, float(theta), scaling, max_positions, sequence_length)


def rope_angles(positions: ArrayLike, inverse_frequencies: ArrayLike, factor: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin (..., dim / 2) float32 of positions (...) times the inverse frequencies, each multiplied by `factor`."""
    angle = np.asarray(positions, np.float64)[..., None] * inverse_frequencies
    return (np.cos(angle) * factor).astype(np.float32), (np.sin(angle) * factor).astype(np.float32)


def _plain(dim, theta, scaling=None, max_positions=None, sequence_length=None):
    return theta ** (-np.arange(0, dim, 2, dtype=np.float64) / dim), 1.0


def _linear(dim, theta, scaling, max_positions, sequence_length):
    """Positions divided by the factor."""
    return _plain(dim, theta)[0] / scaling.factor, 1.0


def _dynamic(dim, theta, scaling, max_positions, sequence_length):
    """NTK-aware: the base grows with the sequence once that is longer than the model's limit."""
    limit = scaling.original_max_positions or max_positions
    length = max(sequence_length or limit, limit)
    grown = theta * (scaling.factor * length / limit - (scaling.factor - 1)) ** (dim / (dim - 2))
    return _plain(dim, grown)


def _llama3(dim, theta, scaling, max_positions, sequence_length):
    """Llama 3.1: long wavelengths divided by the factor, short ones kept, a smooth passage between."""
    inverse, _ = _plain(dim, theta)
    turns = scaling.original_max_positions * inverse / (2 * math.pi)
    kept = np.clip((turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor), 0, 1)
    return inverse * (kept + (1 - kept) / scaling.factor), 1.0


def _yarn(dim, theta, scaling, max_positions, sequence_length):
    """YaRN (Peng et al. 2023): a ramp over the feature pairs between interpolation and none."""
    original = scaling.original_max_positions or max_positions
    factor = max_positions / original if scaling.factor is None else scaling.factor

    def pair_of(turns):
        return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = pair_of(scaling.beta_fast or 32.0), pair_of(scaling.beta_slow or 1.0)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    interpolated = np.clip((np.arange(dim // 2) - low) / (high - low or 0.001), 0, 1)
    inverse, _ = _plain(dim, theta)

    def magnitude(weight):
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    attention_factor = scaling.attention_factor
    if attention_factor is None and scaling.mscale and scaling.mscale_all_dim:
        attention_factor = magnitude(scaling.mscale) / magnitude(scaling.mscale_all_dim)
    elif attention_factor is None:
        attention_factor = magnitude(1.0)
    return inverse * (interpolated / factor + 1 - interpolated), float(attention_factor)


def _longrope(dim, theta, scaling, max_positions, sequence_length):
    """LongRoPE (Ding et al. 2024): a factor a pair, another set of them beyond the original length."""
    original = scaling.original_max_positions or max_positions
    factor = max_positions / original if scaling.factor is None else scaling.factor
    factors = np.asarray(scaling.long_factor if (sequence_length or 0) > original else scaling.short_factor, np.float64)
    if factors.shape != (dim // 2,):
        raise OptionError(f"longrope needs {dim // 2} factors for {dim} rotated features, not {factors.size}")
    attention_factor = scaling.attention_factor
    if attention_factor is None:
        attention_factor = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))
    return _plain(dim, theta)[0] / factors, float(attention_factor)


SCALINGS = {"default": _plain, "linear": _linear, "dynamic": _dynamic, "llama3": _llama3, "yarn": _yarn, "longrope": _longrope}


def alibi_slopes(heads: int, max_bias: float = 8.0) -> np.ndarray:
    """Slopes (heads) float64 of ALiBi (Press et al. 2022): powers of 2^(-max_bias/n), n the power of two at or below `heads`; the heads
    beyond n take every second of the slopes of 2n."""
    if heads < 1:
        raise OptionError(f"alibi_slopes needs at least one head, not {heads}")
    power = 1 << (heads.bit_length() - 1)
    first = 2.0 ** (-max_bias * np.arange(1, power + 1) / power)
    more = 2.0 ** (-max_bias * np.arange(1, 2 * (heads - power), 2) / (2 * power))
    return np.concatenate([first, more])


def t5_buckets(relative_position: ArrayLike, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128) -> np.ndarray:
    """Bucket numbers int64 of relative positions (key position - query position) (Raffel et al. 2020).

    Half of the buckets hold one distance each, the others grow logarithmically up to max_distance. Computed in float32, as the models were trained.
    """
    distance = np.asarray(relative_position, np.int64)
    bucket = np.zeros_like(distance)
    if bidirectional:
        num_buckets //= 2
        bucket += (distance > 0) * num_buckets
        distance = np.abs(distance)
    else:
        distance = np.maximum(-distance, 0)
    exact = num_buckets // 2
    ratio = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact)) / np.float32(math.log(max_distance / exact))
    large = np.minimum(exact + (ratio * np.float32(num_buckets - exact)).astype(np.int64), num_buckets - 1)
    return bucket + np.where(distance < exact, distance, large)


def deberta_buckets(relative_position: ArrayLike, bucket_size: int, max_position: int) -> np.ndarray:
    """Signed bucket numbers int64 of relative positions (query position - key position) (He et al. 2021): distances below half of
    `bucket_size` keep their number, larger ones grow logarithmically. Computed in float32, as the models were trained."""
    relative = np.asarray(relative_position, np.int64)
    middle = bucket_size // 2
    distance = np.where(np.abs(relative) < middle, middle - 1, np.abs(relative))
    ratio = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(middle)) / np.log(np.float32((max_position - 1) / middle))
    large = np.ceil(ratio * np.float32(middle - 1)).astype(np.int64) + middle
    return np.where(distance <= middle, relative, large * np.sign(relative))
