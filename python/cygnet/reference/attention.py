"""Attention as a ModelSpec describes it, in plain NumPy: projections, norms of queries and keys, positions, scores, output."""

from __future__ import annotations

import numpy as np

from cygnet.architectures.inventory import relative_name
from cygnet.architectures.spec import Alibi, Disentangled, Mask, NormKind, QKNorm, Relative, Rotary
from cygnet.reference import ops
from cygnet.reference.positions import deberta_buckets, rope_angles, rope_frequencies, t5_buckets
from cygnet.reference.quantization import from_bfloat16, to_bfloat16


def norm(x, tensors, name, spec):
    """LayerNorm or RMSNorm with the weights called `name`."""
    weight = tensors[f"{name}.weight"]
    if spec.kind is NormKind.RMS:
        return ops.rms_norm(x, weight, spec.eps)
    return ops.layer_norm(x, weight, tensors.get(f"{name}.bias"), spec.eps)


def linear(x, tensors, name):
    """The affine map called `name`."""
    return ops.linear(x, tensors[f"{name}.weight"], tensors.get(f"{name}.bias"))


def attention(x, tensors, name, spec, stack, memory=None, maps=None):
    """One attention sublayer of one sequence.

    Parameters
    ----------
    x : (T, D) float
    tensors : dict of str to array
    name : str
        Such as "decoder.0.attention".
    spec : AttentionSpec
    stack : str
        "encoder" or "decoder": where tables of positions are kept.
    memory : (S, D) float, optional
        What keys and values are made from in cross-attention.
    maps : list, optional
        Gets the attention weights (H, T, S) of this sublayer.

    Returns
    -------
    (T, D) float
    """
    query = _project(x, tensors, name, "query", spec, spec.heads)
    source = x if memory is None else memory
    key = _project(source, tensors, name, "key", spec, spec.kv_heads)
    value = _split(_clip(linear(source, tensors, f"{name}.value"), spec), spec.kv_heads)
    if isinstance(spec.positions, Rotary):
        query, key = (_rotate(part, spec.positions) for part in (query, key))
    if spec.qk_norm is QKNorm.HEAD and spec.qk_norm_last:
        query, key = (_normed(part, tensors, f"{name}.{which}_norm", spec) for part, which in ((query, "query"), (key, "key")))
    mixed, weights = ops.attention(
        query,
        key,
        value,
        scale=spec.scale,
        softcap=spec.softcap,
        causal=spec.mask is Mask.CAUSAL,
        window=spec.window,
        bias=_bias(query, key, tensors, name, spec, stack),
        probabilities=True,
    )
    if maps is not None:
        maps.append(weights)
    return linear(mixed.swapaxes(0, 1).reshape(len(x), spec.heads * spec.head_dim), tensors, f"{name}.output")


def _clip(x, spec):
    return x if spec.clip_qkv is None else np.clip(x, -spec.clip_qkv, spec.clip_qkv)


def _split(x, heads):
    """(T, heads * d) to (heads, T, d)."""
    return x.reshape(len(x), heads, x.shape[1] // heads).swapaxes(0, 1)


def _project(x, tensors, name, which, spec, heads):
    """Queries or keys as (heads, T, head_dim), with their norm."""
    projected = linear(x, tensors, f"{name}.{which}")
    if spec.qk_norm is QKNorm.FULL:
        projected = norm(projected, tensors, f"{name}.{which}_norm", spec.qk_norm_spec)
    projected = _clip(projected, spec)
    if spec.qk_norm is QKNorm.HEAD and not spec.qk_norm_last:
        by_head = projected.reshape(len(x), heads, spec.head_dim)
        return norm(by_head, tensors, f"{name}.{which}_norm", spec.qk_norm_spec).swapaxes(0, 1)
    return _split(projected, heads)


def _normed(x, tensors, name, spec):
    """The norm of each head by itself; x is (heads, T, head_dim)."""
    return norm(x.swapaxes(0, 1), tensors, name, spec.qk_norm_spec).swapaxes(0, 1)


def _rotate(x, rotary):
    length = x.shape[1]
    frequencies, factor = rope_frequencies(rotary.dim, rotary.theta, rotary.scaling, max_positions=rotary.max_positions, sequence_length=length)
    cos, sin = rope_angles(np.arange(length), frequencies, factor)
    return ops.rotary(x, cos.astype(x.dtype), sin.astype(x.dtype), interleaved=rotary.interleaved)


def _bias(query, key, tensors, name, spec, stack):
    """What positions add to the scores, (H, Tq, Tk), or None."""
    positions = spec.positions
    queries, keys = query.shape[1], key.shape[1]
    relative = np.arange(keys)[None] - np.arange(queries)[:, None]
    if isinstance(positions, Alibi):
        return _alibi(positions, keys, spec.scale)[:, None]
    if isinstance(positions, Relative):
        buckets = t5_buckets(relative, bidirectional=positions.bidirectional, num_buckets=positions.buckets, max_distance=positions.max_distance)
        return tensors[relative_name(stack, positions)][buckets].transpose(2, 0, 1)
    if isinstance(positions, Disentangled):
        return _disentangled(query, key, -relative, tensors, name, spec, stack)
    return None


def _alibi(alibi, keys, scale):
    slopes, distance = np.asarray(alibi.slopes, np.float32), np.arange(keys, dtype=np.float32)
    if alibi.bfloat16:
        bias = _rounded(_rounded(slopes)[:, None] * distance)
    else:
        bias = slopes[:, None] * distance
    return bias * np.float32(scale) if alibi.scaled else bias


def _rounded(x):
    return from_bfloat16(to_bfloat16(x))


def _disentangled(query, key, distance, tensors, name, spec, stack):
    """Content-to-position and position-to-content scores; `distance` is query position - key position."""
    positions = spec.positions
    if positions.buckets:
        distance = deberta_buckets(distance, positions.buckets, positions.max_relative_positions)
    rows = np.clip(distance + positions.span, 0, 2 * positions.span - 1)
    table, shared = tensors[f"{stack}.disentangled.weight"], positions.shared_projection
    bias = np.zeros((spec.heads, *distance.shape), query.dtype)
    if positions.content_to_position:
        of_positions = _split(linear(table, tensors, f"{name}.{'key' if shared else 'position_key'}"), spec.heads)
        bias += np.take_along_axis(query @ of_positions.swapaxes(1, 2), rows[None], 2)
    if positions.position_to_content:
        of_positions = _split(linear(table, tensors, f"{name}.{'query' if shared else 'position_query'}"), spec.heads)
        bias += np.take_along_axis(key @ of_positions.swapaxes(1, 2), rows.T[None], 2).swapaxes(1, 2)
    return bias * query.dtype.type(spec.scale)
