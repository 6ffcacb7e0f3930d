"""Command R (Cohere 2024): parallel layers behind one LayerNorm without bias, interleaved rotary positions, scaled logits; version 2 with windows."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, layer_types
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, heads, layer_spec
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import NormKind, NormSpec, Placement, QKNorm, Task
from cygnet.architectures.transforms import per_head
from cygnet.architectures.weights import Row


def tensors_tell(config, weights):
    """GGUF does not say whether queries and keys are normed."""
    return {"use_qk_norm": "blk.0.attn_q_norm.weight" in weights}


def rows(config):
    """The weight table."""
    count, kv, _ = heads(config)
    return (
        Row("decoder.embed.token", "embed_tokens"),
        Row("decoder.{i}.attention_norm", "layers.{i}.input_layernorm", bias=False),
        Row("decoder.{i}.attention.query_norm", "layers.{i}.self_attn.q_norm", per_head(count), bias=False),
        Row("decoder.{i}.attention.key_norm", "layers.{i}.self_attn.k_norm", per_head(kv), bias=False),
        Row("decoder.final_norm", "norm", bias=False),
        *attention_rows(config.get("attention_bias", False)),
        *gated_rows(),
    )


def finish(config, source, task, attentions, family):
    """Parallel layers, tied and scaled head."""
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_eps", 1e-5))
    layers = [layer_spec(config, attention, norm=norm, placement=Placement.PARALLEL) for attention in attentions]
    scale = config.get("logit_scale", 0.0625)
    return assemble(config, source, task, layers, rows(config), family=family, tie_default=True, head_scale=scale)


def build(config, source, task):
    size, norm = heads(config)[2], NormSpec(NormKind.LAYER, config.get("layer_norm_eps", 1e-5))
    normed = config.get("use_qk_norm", False)
    attention = attention_spec(
        config,
        positions=rotary(config, size, theta=500000.0, interleaved=True),
        qk_norm=QKNorm.HEAD if normed else QKNorm.NONE,
        qk_norm_spec=norm if normed else None,
    )
    return finish(config, source, task, [attention] * config["num_hidden_layers"], "cohere")


def build_2(config, source, task):
    """Rotary positions on windowed layers only."""
    pattern, size = config.first("sliding_window_pattern", "_sliding_window_pattern", default=4), config.get("sliding_window", 4096)
    types = layer_types(config, config["num_hidden_layers"], lambda index: "sliding_attention" if (index + 1) % pattern else "full_attention")
    turned = attention_spec(config, positions=rotary(config, heads(config)[2], interleaved=True), window=size)
    plain = attention_spec(config, positions=None)
    return finish(config, source, task, [turned if kind == "sliding_attention" else plain for kind in types], "cohere2")


IGNORED = (
    "cache_implementation",
    "order_of_interleaved_layers",
    "position_embedding_type",
    "rotary_pct",
    "use_gated_activation",
    "use_embedding_sharing",
    "use_parallel_block",
    "use_parallel_embedding",
)
FAMILY = Family("cohere", build, CLASSES, Task.CAUSAL_LM, PREFIXES, IGNORED, tensors_tell)
COHERE2 = Family("cohere2", build_2, CLASSES, Task.CAUSAL_LM, PREFIXES, IGNORED)
