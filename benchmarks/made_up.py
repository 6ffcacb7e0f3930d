"""A language model of a given shape with random 4-bit weights, as a GGUF file: what a model of that size costs, without the model."""

from dataclasses import dataclass

import numpy as np

from cygnet.formats.gguf_write import write_gguf
from cygnet.formats.tensor import Tensor, stored_bytes

BLOCK_BYTES = 18  # of Q4_0: a float16 scale, then two codes a byte for 32 weights
POOL_BLOCKS = 1 << 16


@dataclass(frozen=True)
class Shape:
    """Sizes of a LLaMA model."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    context: int = 2048


TINY_LLAMA = Shape(layers=22, width=2048, heads=32, kv_heads=4, hidden=5632, vocabulary=32000)


def write_random_llama(path, shape):
    """Writes the file one matrix at a time; no more than the largest of them is ever in memory."""
    blocks = _random_blocks()
    kv = shape.width // shape.heads * shape.kv_heads
    tensors = {
        "token_embd.weight": _matrix(blocks, shape.vocabulary, shape.width),
        "output_norm.weight": np.ones(shape.width, np.float32),
        "output.weight": _matrix(blocks, shape.vocabulary, shape.width),
    }
    for layer in range(shape.layers):
        own = {
            "attn_norm": np.ones(shape.width, np.float32),
            "attn_q": _matrix(blocks, shape.width, shape.width),
            "attn_k": _matrix(blocks, kv, shape.width),
            "attn_v": _matrix(blocks, kv, shape.width),
            "attn_output": _matrix(blocks, shape.width, shape.width),
            "ffn_norm": np.ones(shape.width, np.float32),
            "ffn_gate": _matrix(blocks, shape.hidden, shape.width),
            "ffn_up": _matrix(blocks, shape.hidden, shape.width),
            "ffn_down": _matrix(blocks, shape.width, shape.hidden),
        }
        tensors |= {f"blk.{layer}.{name}.weight": value for name, value in own.items()}
    write_gguf(path, tensors, _metadata(shape))


def _random_blocks():
    """(POOL_BLOCKS, 18) uint8: weights of about the size that a trained model has."""
    random = np.random.default_rng(0)
    scales = random.uniform(0.002, 0.01, (POOL_BLOCKS, 1)).astype("<f2").view(np.uint8)
    return np.concatenate([scales, random.integers(0, 256, (POOL_BLOCKS, BLOCK_BYTES - 2), np.uint8)], axis=1)


def _matrix(blocks, rows, columns):
    """A Tensor that repeats the pool of blocks when it is written."""
    size = stored_bytes("Q4_0", (rows, columns))
    return Tensor("random", "Q4_0", (rows, columns), lambda: np.resize(blocks, size))


def _metadata(shape):
    own = {
        "context_length": shape.context,
        "embedding_length": shape.width,
        "block_count": shape.layers,
        "feed_forward_length": shape.hidden,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "vocab_size": shape.vocabulary,
    }
    return {"general.architecture": "llama", **{f"llama.{name}": value for name, value in own.items()}}
