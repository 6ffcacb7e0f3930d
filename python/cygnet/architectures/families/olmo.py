"""OLMo (Groeneveld et al. 2024) with LayerNorm without weights and clamped projections; OLMo 2 (2025) with norms behind the sublayers."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, layer_spec, rms
from cygnet.architectures.family import Family
from cygnet.architectures.spec import NormKind, NormSpec, Placement, QKNorm, Task
from cygnet.architectures.transforms import ones
from cygnet.architectures.weights import Row

EMBEDDING = Row("decoder.embed.token", "embed_tokens")
WEIGHTLESS = tuple(Row(f"decoder.{name}", (), ones, bias=False) for name in ("{i}.attention_norm", "{i}.ffn_norm", "final_norm"))
NORMS = (
    Row("decoder.{i}.attention_norm", "layers.{i}.post_attention_layernorm"),
    Row("decoder.{i}.ffn_norm", "layers.{i}.post_feedforward_layernorm"),
    Row("decoder.{i}.attention.query_norm", "layers.{i}.self_attn.q_norm"),
    Row("decoder.{i}.attention.key_norm", "layers.{i}.self_attn.k_norm"),
    Row("decoder.final_norm", "norm"),
)


def build(config, source, task):
    layer = layer_spec(config, attention_spec(config, clip_qkv=config.get("clip_qkv")), norm=NormSpec(NormKind.LAYER, 1e-5))
    rows = (EMBEDDING, *WEIGHTLESS, *attention_rows(config.get("attention_bias", False)), *gated_rows())
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], rows, family="olmo")


def build_2(config, source, task):
    norm = rms(config, 1e-5)
    layer = layer_spec(config, attention_spec(config, qk_norm=QKNorm.FULL, qk_norm_spec=norm), norm=norm, placement=Placement.OUTPUT)
    rows = (EMBEDDING, *NORMS, *attention_rows(config.get("attention_bias", False)), *gated_rows())
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], rows, family="olmo2")


FAMILY = Family("olmo", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
OLMO2 = Family("olmo2", build_2, CLASSES, Task.CAUSAL_LM, PREFIXES)
