"""Every operation of a Transformer in plain NumPy: the oracle of the tests and the baseline of the benchmarks.

Arrays keep their dtype: float64 in gives float64 arithmetic. The last axis holds the features; other axes are free.
"""

import numpy as np


def softmax(x, mask=None):
    """Softmax over the last axis of the entries where `mask` is nonzero; a row without any gives zeros."""
    x = np.asarray(x)
    if mask is not None:
        x = np.where(np.asarray(mask) != 0, x, -np.inf)
    if x.shape[-1] == 0:
        return x.copy()
    largest = x.max(-1, keepdims=True)
    shifted = np.exp(x - np.where(largest == -np.inf, 0, largest))
    total = shifted.sum(-1, keepdims=True)
    return shifted / np.where(total == 0, 1, total)


def log_softmax(x):
    """x - log(sum(exp(x))) over the last axis."""
    x = np.asarray(x)
    if x.shape[-1] == 0:
        return x.copy()
    largest = x.max(-1, keepdims=True)
    shifted = x - np.where(largest == -np.inf, 0, largest)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    """(x - mean) / sqrt(var + eps) * weight + bias with the biased variance (Ba et al. 2016)."""
    x = np.asarray(x)
    centred = x - x.mean(-1, keepdims=True)
    y = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + x.dtype.type(eps))
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


def rms_norm(x, weight=None, eps=1e-6):
    """x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019)."""
    x = np.asarray(x)
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(eps))
    return y if weight is None else y * weight


def sigmoid(x):
    """1 / (1 + exp(-x)) without overflow."""
    x = np.asarray(x)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def gelu(x):
    """x Phi(x) (Hendrycks and Gimpel 2016)."""
    x = np.asarray(x)
    from scipy.special import erf  # takes longer to import than all the rest, and loading a model passes by here

    return x * (x.dtype.type(0.5) * (1 + erf(x / np.sqrt(x.dtype.type(2)))))


def gelu_tanh(x):
    """The tanh form of GELU, also called gelu_new, gelu_fast and gelu_pytorch_tanh."""
    x = np.asarray(x)
    u = x.dtype.type(np.sqrt(2 / np.pi)) * (x + x.dtype.type(0.044715) * x * x * x)
    return x.dtype.type(0.5) * x * (1 + np.tanh(u))


def gelu_quick(x):
    """x sigmoid(1.702 x)."""
    x = np.asarray(x)
    return x * sigmoid(x.dtype.type(1.702) * x)


def silu(x):
    """x sigmoid(x), also called swish."""
    x = np.asarray(x)
    return x * sigmoid(x)


def relu(x):
    """max(x, 0)."""
    return np.maximum(x, 0)


def relu2(x):
    """max(x, 0) squared."""
    return np.square(np.maximum(x, 0))


def identity(x):
    """x itself."""
    return np.asarray(x)


# The order of csrc/cyg_kernels.h: enum cyg_activation.
ACTIVATIONS = {
    "identity": identity,
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "gelu_quick": gelu_quick,
    "silu": silu,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "relu2": relu2,
}


def softcap(x, cap):
    """cap * tanh(x / cap)."""
    x = np.asarray(x)
    return x.dtype.type(cap) * np.tanh(x / x.dtype.type(cap))


def linear(x, weight, bias=None):
    """x W^T + b for W (N, K)."""
    y = np.asarray(x) @ np.asarray(weight).T
    return y if bias is None else y + bias


def feed_forward(x, up, down, *, activation="relu", up_bias=None, down_bias=None, gate=None, gate_bias=None):
    """down(f(up(x))), or down(f(gate(x)) * up(x)) with a gate (Shazeer 2020)."""
    function = ACTIVATIONS[activation]
    hidden = linear(x, up, up_bias)
    hidden = function(hidden) if gate is None else function(linear(x, gate, gate_bias)) * hidden
    return linear(hidden, down, down_bias)


def rotary(x, cos, sin, *, interleaved=False):
    """Rotates the first 2 R features of x (..., D) by the angles of cos, sin (..., R) (Su et al. 2021).

    The pairs are (i, i + R), or (2i, 2i + 1) if interleaved: (a, b) becomes (a cos - b sin, b cos + a sin). Features past 2 R stay.
    """
    x = np.asarray(x)
    half = cos.shape[-1]
    first, second = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(0, half), slice(half, 2 * half))
    a, b = x[..., first], x[..., second]
    y = x.copy()
    y[..., first] = a * cos - b * sin
    y[..., second] = b * cos + a * sin
    return y


def allowed_keys(queries, keys, *, causal=False, window=None, first_query=None):
    """Boolean (queries, keys): which keys a query may attend; query i sits at position first_query + i (keys - queries if None)."""
    first = keys - queries if first_query is None else first_query
    distance = (first + np.arange(queries))[:, None] - np.arange(keys)[None]
    allowed = np.ones((queries, keys), bool)
    if causal:
        allowed &= distance >= 0
    if window:
        allowed &= np.abs(distance) < window
    return allowed


def attention(
    query,
    key,
    value,
    *,
    scale=None,
    softcap=None,
    causal=False,
    window=None,
    first_query=None,
    mask=None,
    bias=None,
    slopes=None,
    probabilities=False,
):
    """Scaled dot-product attention (Vaswani et al. 2017) with every switch the kernels know.

    query (..., H, Tq, D), key (..., Hk, Tk, D), value (..., Hk, Tk, Dv); query head h reads key head h * Hk // H. In this order: scores
    q.k * scale (1 / sqrt(D) if None); softcap; slopes (H) times (key position - query position); bias (broadcast to (..., H, Tq, Tk)); the
    masks: `mask` (broadcast to (..., H, Tq, Tk), or (B, Tk) for keys), causal, window. A query that may see nothing gives zeros.
    With `probabilities` the result is a pair (output, softmax (..., H, Tq, Tk)).
    """
    query, key, value = np.asarray(query), np.asarray(key), np.asarray(value)
    group = query.shape[-3] // key.shape[-3]
    key, value = np.repeat(key, group, -3), np.repeat(value, group, -3)
    queries, keys = query.shape[-2], key.shape[-2]
    first = keys - queries if first_query is None else first_query
    scores = query @ np.swapaxes(key, -1, -2) * query.dtype.type(query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        capped = query.dtype.type(softcap)
        scores = capped * np.tanh(scores / capped)
    if slopes is not None:
        distance = np.arange(keys)[None] - (first + np.arange(queries))[:, None]
        scores = scores + (np.asarray(slopes)[:, None, None] * distance).astype(scores.dtype)
    if bias is not None:
        scores = scores + bias
    allowed = allowed_keys(queries, keys, causal=causal, window=window, first_query=first)
    if mask is not None:
        mask = np.asarray(mask) != 0
        allowed = allowed & (mask[:, None, None, :] if mask.ndim == 2 and query.ndim == 4 else mask)
    weights = softmax(scores, np.broadcast_to(allowed, scores.shape))
    output = weights @ value
    return (output, weights) if probabilities else output
