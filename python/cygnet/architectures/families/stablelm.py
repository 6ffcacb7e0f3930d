"""StableLM 2 (Stability AI 2024): LayerNorm, partial rotary positions, optional norms of each query and key head, optional parallel layers."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, heads, layer_spec, norm_rows
from cygnet.architectures.family import Family
from cygnet.architectures.spec import NormKind, NormSpec, Placement, QKNorm, Task
from cygnet.architectures.transforms import per_head
from cygnet.architectures.weights import Row


def tensors_tell(config, weights):
    """GGUF does not name the variants."""
    return {"qk_layernorm": "blk.0.attn_q_norm.weight" in weights, "use_parallel_residual": "blk.0.ffn_norm.weight" not in weights}


def build(config, source, task):
    count, kv, _ = heads(config)
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_eps", 1e-5))
    normed = config.get("qk_layernorm", False)
    attention = attention_spec(config, partial=0.25, qk_norm=QKNorm.HEAD if normed else QKNorm.NONE, qk_norm_spec=norm if normed else None)
    placement = Placement.PARALLEL if config.get("use_parallel_residual", False) else Placement.PRE
    layer = layer_spec(config, attention, norm=norm, placement=placement)
    rows = (
        *norm_rows(bias=True),
        *attention_rows(config.get("use_qkv_bias", False), output_bias=False),
        *gated_rows(),
        Row("decoder.{i}.attention.query_norm", "layers.{i}.self_attn.q_layernorm.norms.{h}", per_head(count), bias=False),
        Row("decoder.{i}.attention.key_norm", "layers.{i}.self_attn.k_layernorm.norms.{h}", per_head(kv), bias=False),
    )
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], rows, family="stablelm")


FAMILY = Family("stablelm", build, CLASSES, Task.CAUSAL_LM, PREFIXES, ("rotary_scaling_factor", "norm_eps"), tensors_tell)
