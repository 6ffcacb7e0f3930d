"""Single operations of the conformance set on cygnet: `block(op, inputs, params)` for attention, norms, activations and positions."""

import numpy as np

from cygnet.architectures.spec import RopeScaling
from cygnet.reference import ops, positions


def sdpa(inputs, **params):
    bias = inputs.get("bias")
    return ops.attention(inputs["q"], inputs["k"], inputs["v"], mask=inputs.get("mask"), slopes=inputs.get("slopes"), bias=bias, **params)


def rms_norm(inputs, eps, plus_one=False):
    weight = inputs["weight"] + np.float32(1) if plus_one else inputs["weight"]
    return ops.rms_norm(inputs["x"], weight, eps=eps)


def gelu(inputs, approximate):
    form = {"none": ops.gelu, "tanh": ops.gelu_tanh, "quick": ops.gelu_quick}[approximate]
    return form(inputs["x"])


def rope(inputs, theta, rotary_dim, interleaved):
    inverse, factor = positions.rope_frequencies(rotary_dim, theta)
    cos, sin = positions.rope_angles(inputs["positions"], inverse, factor)
    return ops.rotary(inputs["x"], cos[:, None], sin[:, None], interleaved=interleaved)


def rope_frequencies(inputs, rope_type, rope_theta, head_dim, max_position_embeddings, seq_len=None, original_max_position_embeddings=None, **scaling):
    scaling = RopeScaling(rope_type, original_max_positions=original_max_position_embeddings, **scaling)
    inverse, factor = positions.rope_frequencies(head_dim, rope_theta, scaling, max_positions=max_position_embeddings, sequence_length=seq_len)
    return {"inv_freq": inverse, "attention_factor": np.array([factor])}


def sinusoidal(inputs, length, dim, layout, padding_idx=None):
    return positions.sinusoidal_positions(length, dim, layout, padding_idx)


BLOCKS = {
    "sdpa": sdpa,
    "layer_norm": lambda inputs, eps: ops.layer_norm(inputs["x"], inputs["weight"], inputs.get("bias"), eps=eps),
    "rms_norm": rms_norm,
    "gelu": gelu,
    "silu": lambda inputs: ops.silu(inputs["x"]),
    "relu": lambda inputs: ops.relu(inputs["x"]),
    "tanh": lambda inputs: np.tanh(inputs["x"]),
    "sigmoid": lambda inputs: ops.sigmoid(inputs["x"]),
    "softcap": lambda inputs, cap: ops.softcap(inputs["x"], cap),
    "softmax": lambda inputs: ops.softmax(inputs["x"]),
    "log_softmax": lambda inputs: ops.log_softmax(inputs["x"]),
    "rope": rope,
    "rope_frequencies": rope_frequencies,
    "sinusoidal": sinusoidal,
    "t5_bucket": lambda inputs, **params: positions.t5_buckets(inputs["relative_position"], **params),
    "deberta_bucket": lambda inputs, bucket_size, max_position: positions.deberta_buckets(inputs["relative_position"], bucket_size, max_position),
    "alibi_slopes": lambda inputs, heads: positions.alibi_slopes(heads),
}


def block(op, inputs, params):
    """The result of one operation, an array or a dict of arrays; NotImplementedError for an operation of another part."""
    if op not in BLOCKS:
        raise NotImplementedError(op)
    return BLOCKS[op](inputs, **params)
