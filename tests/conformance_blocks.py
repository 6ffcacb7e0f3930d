"""Single operations of the conformance set: `block(op, inputs, params)` for attention, norms, activations, positions and GGUF blocks."""

import numpy as np

from cygnet import functional
from cygnet.architectures.spec import RopeScaling
from cygnet.formats import Tensor


def sdpa(inputs, **params):
    switches = {name: inputs.get(name) for name in ("mask", "bias", "slopes")}
    return functional.attention(inputs["q"], inputs["k"], inputs["v"], **switches, **params)


def rms_norm(inputs, eps, plus_one=False):
    weight = inputs["weight"] + np.float32(1) if plus_one else inputs["weight"]
    return functional.rms_norm(inputs["x"], weight, eps=eps)


def rope(inputs, theta, rotary_dim, interleaved):
    return functional.rotary(inputs["x"], inputs["positions"], theta=theta, rotary_dim=rotary_dim, interleaved=interleaved)


def rope_frequencies(
    inputs, rope_type, rope_theta, head_dim, max_position_embeddings, seq_len=None, original_max_position_embeddings=None, **scaling
):
    scaling = RopeScaling(rope_type, original_max_positions=original_max_position_embeddings, **scaling)
    inverse, factor = functional.rope_frequencies(head_dim, rope_theta, scaling, max_positions=max_position_embeddings, sequence_length=seq_len)
    return {"inv_freq": inverse, "attention_factor": np.array([factor])}


def sinusoidal(inputs, length, dim, layout, padding_idx=None):
    return functional.sinusoidal_positions(length, dim, layout, padding_idx)


def dequantize(inputs, type, block_size, block_bytes):
    raw = np.ascontiguousarray(inputs["raw"])
    shape = (raw.shape[0], raw.shape[1] // block_bytes * block_size)
    return Tensor("blocks", type, shape, lambda: raw.reshape(-1)).to_float32()


BLOCKS = {
    "sdpa": sdpa,
    "layer_norm": lambda inputs, eps: functional.layer_norm(inputs["x"], inputs["weight"], inputs.get("bias"), eps=eps),
    "rms_norm": rms_norm,
    "gelu": lambda inputs, approximate: functional.gelu(inputs["x"], approximate),
    "silu": lambda inputs: functional.silu(inputs["x"]),
    "relu": lambda inputs: functional.relu(inputs["x"]),
    "tanh": lambda inputs: functional.tanh(inputs["x"]),
    "sigmoid": lambda inputs: functional.sigmoid(inputs["x"]),
    "softcap": lambda inputs, cap: functional.softcap(inputs["x"], cap),
    "softmax": lambda inputs: functional.softmax(inputs["x"]),
    "log_softmax": lambda inputs: functional.log_softmax(inputs["x"]),
    "rope": rope,
    "rope_frequencies": rope_frequencies,
    "sinusoidal": sinusoidal,
    "t5_bucket": lambda inputs, **params: functional.t5_buckets(inputs["relative_position"], **params),
    "deberta_bucket": lambda inputs, bucket_size, max_position: functional.deberta_buckets(inputs["relative_position"], bucket_size, max_position),
    "dequantize": dequantize,
    "alibi_slopes": lambda inputs, heads: functional.alibi_slopes(heads),
}


def block(op, inputs, params):
    """The result of one operation, an array or a dict of arrays; NotImplementedError for an operation of another part."""
    if op not in BLOCKS:
        raise NotImplementedError(op)
    return BLOCKS[op](inputs, **params)
