"""The operations of a Transformer on NumPy arrays, computed by cygnet's kernels.

Arrays are float32 (others are converted) with any leading batch axes; results are new float32 arrays. One thread computes, the one that calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cygnet._core import _attention, _kernels, _products
from cygnet.errors import OptionError
from cygnet.reference import quantization
from cygnet.reference.positions import alibi_slopes, deberta_buckets, rope_angles, rope_frequencies, sinusoidal_positions, t5_buckets

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from cygnet.architectures.spec import RopeScaling

__all__ = [
    "alibi_slopes",
    "attention",
    "deberta_buckets",
    "dequantize",
    "feed_forward",
    "gelu",
    "layer_norm",
    "linear",
    "log_softmax",
    "quantize",
    "relu",
    "rms_norm",
    "rope_angles",
    "rope_frequencies",
    "rotary",
    "sigmoid",
    "silu",
    "sinusoidal_positions",
    "softcap",
    "softmax",
    "t5_buckets",
    "tanh",
]


def _float32(x, what, axes=0):
    """x as a contiguous float32 array of at least `axes` axes."""
    x = np.asarray(x, np.float32, order="C")
    if x.ndim < axes:
        raise OptionError(f"{what} needs at least {axes} axes, its shape is {x.shape}")
    return x


def _rows(x):
    """x (..., D) as a matrix (M, D)."""
    return x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])


def _vector(v, size, what):
    if v is None:
        return None
    v = _float32(v, what)
    if v.shape != (size,):
        raise OptionError(f"{what} must have shape ({size},), not {v.shape}")
    return v


def softmax(x: ArrayLike, mask: ArrayLike | None = None) -> np.ndarray:
    """Softmax over the last axis.

    Parameters
    ----------
    x : (..., N) float32
    mask : (..., N) bool or int, broadcast to x, optional
        Entries where it is zero take no part. A row without any entry gives zeros.

    Returns
    -------
    (..., N) float32

    Examples
    --------
    >>> softmax([[0.0, 0.0, 5.0]], mask=[[1, 1, 0]])
    array([[0.5, 0.5, 0. ]], dtype=float32)
    """
    y = np.array(_float32(x, "x", 1), copy=True)
    if mask is not None:
        mask = np.ascontiguousarray(_rows(np.broadcast_to(np.asarray(mask) != 0, y.shape))).view(np.uint8)
    _kernels.softmax(_rows(y), mask)
    return y


def log_softmax(x: ArrayLike) -> np.ndarray:
    """x - log(sum(exp(x))) over the last axis.

    Parameters
    ----------
    x : (..., N) float32

    Returns
    -------
    (..., N) float32

    Examples
    --------
    >>> log_softmax([0.0, 0.0]).round(4)
    array([-0.6931, -0.6931], dtype=float32)
    """
    y = np.array(_float32(x, "x", 1), copy=True)
    _kernels.log_softmax(_rows(y))
    return y


def layer_norm(x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-5) -> np.ndarray:
    """Layer normalisation over the last axis (Ba et al. 2016): (x - mean) / sqrt(var + eps) * weight + bias, with the biased variance.

    Parameters
    ----------
    x : (..., D) float32
    weight, bias : (D,) float32, optional
    eps : float

    Returns
    -------
    (..., D) float32

    Examples
    --------
    >>> layer_norm([1.0, 3.0], eps=0.0)
    array([-1.,  1.], dtype=float32)
    """
    x = _float32(x, "x", 1)
    y = np.empty_like(x)
    _kernels.layer_norm(_rows(x), _vector(weight, x.shape[-1], "weight"), _vector(bias, x.shape[-1], "bias"), eps, _rows(y))
    return y


def rms_norm(x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-6) -> np.ndarray:
    """Root-mean-square normalisation over the last axis (Zhang and Sennrich 2019): x / sqrt(mean(x^2) + eps) * weight.

    Parameters
    ----------
    x : (..., D) float32
    weight : (D,) float32, optional
    eps : float

    Returns
    -------
    (..., D) float32

    Examples
    --------
    >>> rms_norm([3.0, 3.0], weight=[1.0, 2.0], eps=0.0)
    array([1., 2.], dtype=float32)
    """
    x = _float32(x, "x", 1)
    y = np.empty_like(x)
    _kernels.rms_norm(_rows(x), _vector(weight, x.shape[-1], "weight"), eps, _rows(y))
    return y


def _activate(name, x):
    x = _float32(x, "x")
    y = np.empty_like(x)
    _kernels.activate(name, x.reshape(-1), y.reshape(-1))
    return y


def gelu(x: ArrayLike, approximate: str = "none") -> np.ndarray:
    """Gaussian error linear unit (Hendrycks and Gimpel 2016).

    Parameters
    ----------
    x : array, float32
    approximate : {"none", "tanh", "quick"}
        x Phi(x) itself, its tanh form, or x sigmoid(1.702 x).

    Returns
    -------
    array, float32

    Raises
    ------
    OptionError
        Another form is asked for.

    Examples
    --------
    >>> gelu([-1.0, 0.0, 1.0]).round(4)
    array([-0.1587,  0.    ,  0.8413], dtype=float32)
    """
    forms = {"none": "gelu", "tanh": "gelu_tanh", "quick": "gelu_quick"}
    if approximate not in forms:
        raise OptionError(f"gelu has no form {approximate!r}: {', '.join(forms)}")
    return _activate(forms[approximate], x)


def relu(x: ArrayLike) -> np.ndarray:
    """max(x, 0) elementwise, float32.

    Examples
    --------
    >>> relu([-1.0, 2.0])
    array([0., 2.], dtype=float32)
    """
    return _activate("relu", x)


def silu(x: ArrayLike) -> np.ndarray:
    """x sigmoid(x) elementwise, float32, also called swish.

    Examples
    --------
    >>> silu([0.0, 1.0]).round(4)
    array([0.    , 0.7311], dtype=float32)
    """
    return _activate("silu", x)


def sigmoid(x: ArrayLike) -> np.ndarray:
    """1 / (1 + exp(-x)) elementwise, float32.

    Examples
    --------
    >>> sigmoid([0.0])
    array([0.5], dtype=float32)
    """
    return _activate("sigmoid", x)


def tanh(x: ArrayLike) -> np.ndarray:
    """Hyperbolic tangent elementwise, float32.

    Examples
    --------
    >>> tanh([0.0, 1.0]).round(4)
    array([0.    , 0.7616], dtype=float32)
    """
    return _activate("tanh", x)


def softcap(x: ArrayLike, cap: float) -> np.ndarray:
    """cap * tanh(x / cap) elementwise, float32: large values bend towards +-cap.

    Raises
    ------
    OptionError
        The cap is not positive.

    Examples
    --------
    >>> softcap([0.0, 1e6], 30.0)
    array([ 0., 30.], dtype=float32)
    """
    if not cap > 0:
        raise OptionError(f"softcap needs a positive cap, not {cap}")
    y = np.array(_float32(x, "x"), copy=True)
    _kernels.softcap(cap, y.reshape(-1))
    return y


def linear(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> np.ndarray:
    """x W^T + bias, through BLAS.

    Parameters
    ----------
    x : (..., K) float32
    weight : (N, K) float32
    bias : (N,) float32, optional

    Returns
    -------
    (..., N) float32

    Raises
    ------
    OptionError
        The shapes do not fit.

    Examples
    --------
    >>> linear([[1.0, 2.0]], weight=[[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]], bias=[0.0, 0.0, 1.0])
    array([[1., 3., 7.]], dtype=float32)
    """
    from cygnet._core import _blas  # loads scipy.linalg, which nothing else here needs

    x, weight = _float32(x, "x", 1), _float32(weight, "weight", 2)
    if weight.ndim != 2 or weight.shape[1] != x.shape[-1]:
        raise OptionError(f"weight must have shape (N, {x.shape[-1]}), not {weight.shape}")
    y = np.zeros((*x.shape[:-1], weight.shape[0]), np.float32)
    bias = _vector(bias, weight.shape[0], "bias")
    if bias is not None:
        y += bias
    _blas.linear(_rows(x), weight, _rows(y), beta=0.0 if bias is None else 1.0)
    return y


def feed_forward(
    x: ArrayLike,
    up: ArrayLike,
    down: ArrayLike,
    *,
    activation: str = "relu",
    up_bias: ArrayLike | None = None,
    down_bias: ArrayLike | None = None,
    gate: ArrayLike | None = None,
    gate_bias: ArrayLike | None = None,
) -> np.ndarray:
    """The feed-forward sublayer: down(f(up(x))), or down(f(gate(x)) * up(x)) with a gate (Shazeer 2020).

    Parameters
    ----------
    x : (..., D) float32
    up, gate : (F, D) float32
    down : (D, F) float32
    activation : {"identity", "relu", "gelu", "gelu_tanh", "gelu_quick", "silu", "tanh", "sigmoid", "relu2"}
    up_bias, gate_bias : (F,) float32, optional
    down_bias : (D,) float32, optional

    Returns
    -------
    (..., D) float32

    Examples
    --------
    >>> feed_forward([[1.0]], up=[[1.0], [-1.0]], down=[[2.0, 5.0]])
    array([[2.]], dtype=float32)
    """
    hidden = linear(x, up, up_bias)
    if gate is None:
        return linear(_activate(activation, hidden), down, down_bias)
    gated = linear(x, gate, gate_bias)
    _kernels.gate(activation, _rows(gated), _rows(hidden), _rows(hidden))
    return linear(hidden, down, down_bias)


def rotary(
    x: ArrayLike,
    positions: ArrayLike,
    *,
    theta: float = 10000.0,
    rotary_dim: int | None = None,
    interleaved: bool = False,
    scaling: RopeScaling | None = None,
    max_positions: int | None = None,
) -> np.ndarray:
    """Rotary positions (Su et al. 2021): pairs of features turned by angle position * theta^(-2i / rotary_dim).

    Parameters
    ----------
    x : (..., H, T, D) float32
    positions : (..., T) int, broadcast over the batch axes
    theta : float
    rotary_dim : int, optional
        Features that are rotated, from the first on; all D by default.
    interleaved : bool
        Pairs (2i, 2i + 1) instead of (i, i + rotary_dim / 2).
    scaling : cygnet.architectures.spec.RopeScaling, optional
    max_positions : int, optional
        The model's limit, which some scalings need.

    Returns
    -------
    (..., H, T, D) float32

    Examples
    --------
    >>> rotary([[[1.0, 0.0], [1.0, 0.0]]], positions=[0, 1]).round(4)
    array([[[1.    , 0.    ],
            [0.5403, 0.8415]]], dtype=float32)
    """
    y = np.array(_float32(x, "x", 3), copy=True)
    *batch, heads, tokens, dim = y.shape
    rotary_dim = dim if rotary_dim is None else rotary_dim
    if not 0 <= rotary_dim <= dim:
        raise OptionError(f"rotary_dim must be 0 to {dim}, not {rotary_dim}")
    positions = np.asarray(positions)
    inverse, factor = rope_frequencies(
        rotary_dim, theta, scaling, max_positions=max_positions, sequence_length=int(positions.max()) + 1 if positions.size else 0
    )
    each = np.ascontiguousarray(np.broadcast_to(positions, (*batch, tokens))).reshape(-1, tokens)
    cos, sin = rope_angles(each, inverse, factor)
    for part, c, s in zip(y.reshape(-1, heads, tokens, dim), cos, sin, strict=True):
        _kernels.rotate(part.transpose(1, 0, 2), c, s, interleaved)
    return y


def attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    scale: float | None = None,
    softcap: float | None = None,
    causal: bool = False,
    window: int | None = None,
    first_query: int | None = None,
    mask: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    slopes: ArrayLike | None = None,
) -> np.ndarray:
    """Scaled dot-product attention (Vaswani et al. 2017) without a T x T matrix in memory.

    Query head h reads key head h * Hk // H. Scores are scale * q.k, capped, plus ALiBi, plus bias, then masked. A query that may see nothing
    gives zeros.

    Parameters
    ----------
    query : (..., H, Tq, D) float32
    key : (..., Hk, Tk, D) float32
    value : (..., Hk, Tk, Dv) float32
    scale : float, optional
        1 / sqrt(D) by default.
    softcap : float, optional
        Scores become softcap * tanh(score / softcap).
    causal : bool
        Keys after the query's position are hidden.
    window : int, optional
        Only keys at a distance below it are seen.
    first_query : int, optional
        Position of the first query among the keys; Tk - Tq by default.
    mask : (B, Tk), or anything that broadcasts to (..., H, Tq, Tk), bool or int, optional
        Keys where it is zero are hidden.
    bias : float32 that broadcasts to (..., H, Tq, Tk), optional
    slopes : (H,) float32, optional
        ALiBi: slope * (key position - query position) is added to the scores.

    Returns
    -------
    (..., H, Tq, Dv) float32

    Raises
    ------
    OptionError
        Shapes do not fit together, or a head size is above 512.

    Examples
    --------
    >>> attention([[[1.0]]], [[[2.0], [2.0]]], [[[1.0], [3.0]]])
    array([[[2.]]], dtype=float32)
    """
    query, key, value = _float32(query, "query", 3), _float32(key, "key", 3), _float32(value, "value", 3)
    *batch, heads, queries, dim = query.shape
    key_heads, keys = key.shape[-3:-1]
    if key.shape[:-3] != tuple(batch) or key.shape[-1] != dim or value.shape[:-1] != key.shape[:-1] or not key_heads or heads % key_heads:
        raise OptionError(f"attention: query {query.shape}, key {key.shape} and value {value.shape} do not fit together")
    value_dim, group = value.shape[-1], heads // key_heads
    first = keys - queries if first_query is None else first_query
    scale = dim**-0.5 if scale is None else scale
    hidden_keys, bias = _mask_and_bias(mask, bias, (*batch, heads, queries, keys))
    relative, zero = None, 0
    if slopes is not None:
        slopes, zero = np.asarray(slopes, np.float64), max(first + queries - 1, 0)
        if slopes.shape != (heads,):
            raise OptionError(f"slopes must have shape ({heads},), not {slopes.shape}")
        relative = (slopes[:, None] * np.arange(-zero, max(keys - first, 1))).astype(np.float32)

    # Keys and values share one head size in the kernel: the shorter is filled up with zeros. Queries before the first key see nothing if causal.
    wide = max(dim, value_dim)
    query, key, value = _widened(query, wide), _widened(key, wide), _widened(value, wide)
    skipped = min(max(-first, 0), queries)
    if skipped and not causal:
        raise OptionError(f"first_query {first} is before the first key, which only causal attention allows")
    out = np.zeros((*batch, heads, queries, wide), np.float32)
    flat = [a.reshape(-1, *a.shape[-3:]) for a in (query, key, value, out)]
    for b in range(flat[0].shape[0]):
        hidden = None if hidden_keys is None else hidden_keys[b]
        for h in range(key_heads):
            k, v = flat[1][b, h], flat[2][b, h]
            key_bias = None
            if hidden is not None:
                k, v = (np.where(hidden[:, None], np.float32(0), a) for a in (k, v))
                key_bias = np.where(hidden, np.float32(-np.inf), np.float32(0))
            blocks = np.empty((-(-keys // _attention.KEY_BLOCK), 2 * _attention.KEY_BLOCK * wide * 4), np.uint8)
            _attention.store_kv(k, v, blocks)
            part = slice(h * group, (h + 1) * group)
            _attention.attention(
                flat[0][b, part, skipped:].transpose(1, 0, 2),
                blocks,
                keys,
                flat[3][b, part, skipped:].transpose(1, 0, 2),
                scale=scale,
                softcap=softcap or 0.0,
                causal=causal,
                window=window or 0,
                first_query=first + skipped,
                relative=None if relative is None else relative[part],
                relative_zero=zero,
                key_bias=key_bias,
                bias=None if bias is None else bias[b, part, skipped:],
            )
    return np.ascontiguousarray(out[..., :value_dim])


def _widened(x, width):
    return x if x.shape[-1] == width else np.ascontiguousarray(np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, width - x.shape[-1])]))


def _mask_and_bias(mask, bias, shape):
    """Keys hidden from every query (B, Tk) or None, and one bias (B, H, Tq, Tk) or None that holds the bias and every other mask."""
    hidden_keys = None
    try:
        if mask is not None and np.ndim(mask) == 2 and len(shape) == 4:
            hidden_keys, mask = np.broadcast_to(np.asarray(mask) == 0, (shape[0], shape[-1])), None
        if bias is None and mask is None:
            return hidden_keys, None
        combined = np.atleast_1d(np.asarray(0 if bias is None else bias, np.float32))
        if mask is not None:
            combined = np.where(mask, combined, np.float32(-np.inf))
        # Only the last axis must be written out, the others may stay repeated.
        combined = np.ascontiguousarray(np.broadcast_to(combined, (*combined.shape[:-1], shape[-1])))
        return hidden_keys, np.broadcast_to(combined, shape).reshape(-1, *shape[-3:])
    except ValueError:
        raise OptionError(f"attention: mask {np.shape(mask)} or bias {np.shape(bias)} does not broadcast to {tuple(shape)}") from None


def quantize(weight: ArrayLike, kind: str = "int8") -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Weights to codes and scales per group of 32 along the last axis.

    Parameters
    ----------
    weight : (..., K) float32
    kind : {"int8", "int4", "int4m"}
        int8: scale * code, -127..127. int4: scale * (code - 8), 0..15. int4m: scale * code + minimum, 0..15.

    Returns
    -------
    codes : (..., K) int8 or uint8
    scales : (..., ceil(K / 32)) float32
    minima : (..., ceil(K / 32)) float32 for int4m, else None

    Raises
    ------
    OptionError
        Another kind is asked for.

    Examples
    --------
    >>> codes, scales, minima = quantize([[127.0, -3.0]])
    >>> codes, scales
    (array([[127,  -3]], dtype=int8), array([[1.]], dtype=float32))
    """
    weight = _float32(weight, "weight", 1)
    codes, scales, minima = _products.quantize_weights(kind, _rows(weight))
    codes = codes.view(np.int8) if kind == "int8" else codes
    return tuple(None if a is None else a.reshape(*weight.shape[:-1], a.shape[-1]) for a in (codes, scales, minima))


def dequantize(codes: ArrayLike, scales: ArrayLike, minima: ArrayLike | None = None) -> np.ndarray:
    """Weights back from what quantize gave: int8 codes are "int8", uint8 codes "int4", or "int4m" with minima.

    Parameters
    ----------
    codes : (..., K) int8 or uint8
    scales : (..., ceil(K / 32)) float32
    minima : (..., ceil(K / 32)) float32, optional

    Returns
    -------
    (..., K) float32

    Examples
    --------
    >>> dequantize(*quantize([[127.0, -3.0]]))
    array([[127.,  -3.]], dtype=float32)
    """
    if np.asarray(codes).dtype == np.int8:
        return quantization.dequantize_int8(codes, scales)
    return quantization.dequantize_int4(codes, scales, minima)
