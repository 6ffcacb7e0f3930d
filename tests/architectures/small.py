"""Small checkpoints made with NumPy alone: a config and tensors that fit it, for tests of loading."""

import numpy as np

from cygnet.architectures.config import Config
from cygnet.architectures.registry import family_of, task_of
from cygnet.formats.tensor import Tensor

LLAMA = dict(
    model_type="llama",
    architectures=["LlamaForCausalLM"],
    vocab_size=11,
    hidden_size=8,
    intermediate_size=12,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    max_position_embeddings=32,
)
BERT = dict(
    model_type="bert",
    architectures=["BertModel"],
    vocab_size=11,
    hidden_size=8,
    intermediate_size=12,
    num_hidden_layers=1,
    num_attention_heads=2,
    max_position_embeddings=16,
)


def tensor(name, array):
    """A float32 Tensor in memory."""
    array = np.ascontiguousarray(array, np.float32)
    return Tensor(name, "F32", array.shape, lambda: np.frombuffer(array.tobytes(), np.uint8))


def tensors(shapes, seed=0):
    """{name: Tensor} of noise."""
    random = np.random.default_rng(seed)
    return {name: tensor(name, random.standard_normal(shape)) for name, shape in shapes.items()}


def llama_tensors(config=LLAMA, head=True, seed=0, prefix="model."):
    """What a llama file holds."""
    d, f, v = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    size = d // config["num_attention_heads"]
    kv = config.get("num_key_value_heads", config["num_attention_heads"]) * size
    shapes = {f"{prefix}embed_tokens.weight": (v, d), f"{prefix}norm.weight": (d,)}
    for i in range(config["num_hidden_layers"]):
        at = f"{prefix}layers.{i}."
        shapes |= {at + "input_layernorm.weight": (d,), at + "post_attention_layernorm.weight": (d,)}
        shapes |= {at + f"self_attn.{n}_proj.weight": (rows, d) for n, rows in (("q", d), ("k", kv), ("v", kv), ("o", d))}
        shapes |= {at + "mlp.gate_proj.weight": (f, d), at + "mlp.up_proj.weight": (f, d), at + "mlp.down_proj.weight": (d, f)}
    if head:
        shapes["lm_head.weight"] = (v, d)
    return tensors(shapes, seed)


def bert_shapes(config=BERT, prefix="bert.", pooler=True):
    """Names and shapes of a BERT file."""
    d, f, v = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    shapes = {"embeddings.word_embeddings.weight": (v, d), "embeddings.position_embeddings.weight": (config["max_position_embeddings"], d)}
    shapes |= {"embeddings.token_type_embeddings.weight": (2, d)}
    modules = {"embeddings.LayerNorm": None}
    for i in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{i}."
        modules |= {at + f"attention.self.{part}": (d, d) for part in ("query", "key", "value")}
        modules |= {at + "attention.output.dense": (d, d), at + "attention.output.LayerNorm": None}
        modules |= {at + "intermediate.dense": (f, d), at + "output.dense": (d, f), at + "output.LayerNorm": None}
    if pooler:
        modules["pooler.dense"] = (d, d)
    for name, shape in modules.items():
        shapes |= {f"{name}.weight": shape or (d,), f"{name}.bias": (shape[0] if shape else d,)}
    return {prefix + name: shape for name, shape in shapes.items()}


class Anything:
    """Stands for a file while only settings are tested: holds every name it is asked for, or none."""

    def __contains__(self, name):
        return False

    def tied(self, wanted, head, embedding):
        return wanted


def build(config):
    """Spec of a config, without weights, with its settings checked as at loading."""
    family = family_of(config["model_type"])
    settings = Config(config, config["model_type"])
    built = family.build(settings, Anything(), task_of(family, settings))
    settings.finish(family.ignored_settings)
    return built.spec
