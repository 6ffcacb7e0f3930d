"""Persimmon (Adept 2023): fused projections head by head, LayerNorm on queries and keys, half of each head rotated, squared ReLU."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_spec, layer_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import FeedForwardSpec, NormKind, NormSpec, QKNorm, Task
from cygnet.architectures.transforms import heads_of
from cygnet.architectures.weights import Row

AT = "layers.{i}."
ROWS = (
    Row("decoder.embed.token", "embed_tokens"),
    Row("decoder.{i}.attention_norm", AT + "input_layernorm"),
    Row("decoder.{i}.attention.query_norm", AT + "self_attn.q_layernorm"),
    Row("decoder.{i}.attention.key_norm", AT + "self_attn.k_layernorm"),
    Row("decoder.{i}.attention.output", AT + "self_attn.dense"),
    Row("decoder.{i}.ffn_norm", AT + "post_attention_layernorm"),
    Row("decoder.{i}.ffn.up", AT + "mlp.dense_h_to_4h"),
    Row("decoder.{i}.ffn.down", AT + "mlp.dense_4h_to_h"),
    Row("decoder.final_norm", "final_layernorm"),
)


def build(config, source, task):
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_eps", 1e-5))
    normed = config.get("qk_layernorm", True)
    attention = attention_spec(config, partial=0.5, qk_norm=QKNorm.HEAD if normed else QKNorm.NONE, qk_norm_spec=norm)
    size = attention.head_dim
    fused = [
        Row(f"decoder.{{i}}.attention.{name}", AT + "self_attn.query_key_value", heads_of(part * size, size, 3 * size))
        for part, name in enumerate(("query", "key", "value"))
    ]
    ffn = FeedForwardSpec(config["intermediate_size"], config.activation("hidden_act", "relu2"))
    layer = layer_spec(config, attention, norm=norm, ffn=ffn)
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], (*ROWS, *fused), family="persimmon")


FAMILY = Family("persimmon", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
