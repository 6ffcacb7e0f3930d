"""Phi 1, 1.5, 2 (Microsoft 2023): one LayerNorm before parallel attention and feed-forward, partial rotary positions, biases everywhere."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, layer_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import FeedForwardSpec, NormKind, NormSpec, Placement, QKNorm, Task
from cygnet.architectures.weights import Row

ROWS = (
    Row("decoder.embed.token", "embed_tokens"),
    Row("decoder.{i}.attention_norm", "layers.{i}.input_layernorm"),
    Row("decoder.{i}.attention.query_norm", "layers.{i}.self_attn.q_layernorm"),
    Row("decoder.{i}.attention.key_norm", "layers.{i}.self_attn.k_layernorm"),
    Row("decoder.{i}.ffn.up", "layers.{i}.mlp.fc1"),
    Row("decoder.{i}.ffn.down", "layers.{i}.mlp.fc2"),
    Row("decoder.final_norm", "final_layernorm"),
)


def build(config, source, task):
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_eps", 1e-5))
    normed = config.get("qk_layernorm", False)
    attention = attention_spec(config, partial=0.5, qk_norm=QKNorm.HEAD if normed else QKNorm.NONE, qk_norm_spec=norm if normed else None)
    ffn = FeedForwardSpec(config.get("intermediate_size", 4 * config["hidden_size"]), config.activation("hidden_act", "gelu_new"))
    layer = layer_spec(config, attention, ffn=ffn, norm=norm, placement=Placement.PARALLEL)
    rows = (*ROWS, *attention_rows(True, output="dense"))
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], rows, family="phi", head_bias=True)


FAMILY = Family("phi", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
