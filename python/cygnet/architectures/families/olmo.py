"""OLMo (Groeneveld et al. 2024): LayerNorm without weights, clamped projections; OLMo 2 and 3 (2025): norms behind the sublayers; OLMoE: experts."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, layer_types
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, heads, layer_spec, norm_rows, rms
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import ExpertsSpec, FeedForwardSpec, NormKind, NormSpec, Placement, QKNorm, Rotary, Task
from cygnet.architectures.transforms import ones
from cygnet.architectures.weights import Row

EMBEDDING = Row("decoder.embed.token", "embed_tokens")
WEIGHTLESS = tuple(Row(f"decoder.{name}", (), ones, bias=False) for name in ("{i}.attention_norm", "{i}.ffn_norm", "final_norm"))
QK_NORMS = (
    Row("decoder.{i}.attention.query_norm", "layers.{i}.self_attn.q_norm"),
    Row("decoder.{i}.attention.key_norm", "layers.{i}.self_attn.k_norm"),
)
NORMS = (
    Row("decoder.{i}.attention_norm", "layers.{i}.post_attention_layernorm"),
    Row("decoder.{i}.ffn_norm", "layers.{i}.post_feedforward_layernorm"),
    *QK_NORMS,
    Row("decoder.final_norm", "norm"),
)
EXPERTS = (
    *gated_rows(False, "decoder.{i}.ffn.experts.{e}", "layers.{i}.mlp.experts.{e}"),
    Row("decoder.{i}.ffn.router", "layers.{i}.mlp.gate"),
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


def build_3(config, source, task):
    size = config.nullable("sliding_window", 4096)
    types = layer_types(config, config["num_hidden_layers"], lambda index: "sliding_attention" if (index + 1) % 4 else "full_attention")
    layers = []
    for kind in types:
        attention = attention_spec(
            config,
            window=size if kind == "sliding_attention" else None,
            positions=scaled_rotary(config, kind),
            qk_norm=QKNorm.FULL,
            qk_norm_spec=rms(config, 1e-5),
        )
        layers.append(layer_spec(config, attention, norm=rms(config, 1e-5), placement=Placement.OUTPUT))
    rows = (EMBEDDING, *NORMS, *attention_rows(config.get("attention_bias", False)), *gated_rows())
    return assemble(config, source, task, layers, rows, family="olmo3")


def scaled_rotary(config, kind):
    """Scaling that is given once is for the full layers alone."""
    size, theta = heads(config)[2], config.get("rope_theta", 500000.0)
    if "rope_parameters" in config or kind == "full_attention":
        return rotary(config, size, theta=theta, layer_type=kind)
    return Rotary(size, float(theta), max_positions=config.get("max_position_embeddings", 2048))


def build_experts(config, source, task):
    inner = config["intermediate_size"]
    experts = ExpertsSpec(config.get("num_experts", 64), config.get("num_experts_per_tok", 8), inner, config.get("norm_topk_prob", False))
    ffn = FeedForwardSpec(inner, config.activation("hidden_act", "silu"), True, experts)
    norm = rms(config, 1e-5)
    attention = attention_spec(config, qk_norm=QKNorm.FULL, qk_norm_spec=norm, clip_qkv=config.get("clip_qkv"))
    layer = layer_spec(config, attention, norm=norm, ffn=ffn)
    rows = (*norm_rows(), *QK_NORMS, *attention_rows(config.get("attention_bias", False)), *EXPERTS)
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], rows, family="olmoe")


FAMILY = Family("olmo", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
OLMO2 = Family("olmo2", build_2, CLASSES, Task.CAUSAL_LM, PREFIXES)
OLMO3 = Family("olmo3", build_3, CLASSES, Task.CAUSAL_LM, PREFIXES)
OLMOE = Family("olmoe", build_experts, CLASSES, Task.CAUSAL_LM, PREFIXES)
