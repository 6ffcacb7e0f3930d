"""Falcon (Almazrouei et al. 2023) in its three layouts: one key/value head (7B), grouped ones behind two norms (40B), ALiBi with biases (1B)."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, decoder_only, token_embedding
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import Alibi, AttentionSpec, FeedForwardSpec, LayerSpec, Mask, NormKind, NormSpec, Placement, Task
from cygnet.architectures.transforms import heads_of
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel
from cygnet.reference.positions import alibi_slopes

FUSED = "h.{i}.self_attention.query_key_value"


def placement_of(config, grouped):
    """Where the norms stand, and the name of the one before attention and of the one before the feed-forward."""
    parallel = config.get("parallel_attn", True)
    norms = config.get("num_ln_in_parallel_attn", 2 if grouped else None)
    if not parallel and grouped:
        raise UnsupportedModel(f"config of {config.name}: new_decoder_architecture without parallel_attn is not supported")
    if not parallel:
        return Placement.PRE, "input_layernorm", "post_attention_layernorm"
    if grouped and norms == 2:
        return Placement.PARALLEL_SPLIT, "ln_attn", "ln_mlp"
    return Placement.PARALLEL, "input_layernorm", "post_attention_layernorm"


def tensors_tell(config, weights):
    """GGUF does not name the layout."""
    return {"new_decoder_architecture": "blk.0.attn_norm_2.weight" in weights, "multi_query": config.get("num_kv_heads") == 1}


def build(config, source, task):
    hidden, heads = config["hidden_size"], config.first("num_attention_heads", "n_head")
    size, grouped = hidden // heads, config.get("new_decoder_architecture", False)
    several = grouped or not config.get("multi_query", True)
    kv = config.get("num_kv_heads", heads) if several else 1
    group = heads // kv
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_epsilon", 1e-5))
    if config.get("alibi", False):
        positions = Alibi(tuple(alibi_slopes(heads).tolist()), scaled=True, bfloat16=True)
    else:
        positions = rotary(config, size)
    attention = AttentionSpec(heads, kv, size, size**-0.5, Mask.CAUSAL, positions=positions)
    ffn = FeedForwardSpec(config.get("ffn_hidden_size", 4 * hidden), config.activation("activation", "gelu"))
    placement, first, second = placement_of(config, grouped)
    bias, stride = config.get("bias", False), (group + 2) * size
    rows = (
        Row("decoder.embed.token", "word_embeddings"),
        Row("decoder.{i}.attention_norm", f"h.{{i}}.{first}"),
        Row("decoder.{i}.ffn_norm", f"h.{{i}}.{second}"),
        Row("decoder.{i}.attention.query", FUSED, heads_of(0, group * size, stride), bias=bias),
        Row("decoder.{i}.attention.key", FUSED, heads_of(group * size, size, stride), bias=bias),
        Row("decoder.{i}.attention.value", FUSED, heads_of((group + 1) * size, size, stride), bias=bias),
        Row("decoder.{i}.attention.output", "h.{i}.self_attention.dense", bias=bias),
        Row("decoder.{i}.ffn.up", "h.{i}.mlp.dense_h_to_4h", bias=bias),
        Row("decoder.{i}.ffn.down", "h.{i}.mlp.dense_4h_to_h", bias=bias),
        Row("decoder.final_norm", "ln_f"),
    )
    return decoder_only(
        config,
        source,
        task,
        family="falcon",
        embedding=token_embedding(config),
        layers=[LayerSpec(attention, ffn, norm, placement)] * config.first("num_hidden_layers", "n_layer"),
        rows=rows,
        final_norm=norm,
        hidden_size=hidden,
        tie_default=True,
        token_name="word_embeddings",
        max_positions=None if config.get("alibi", False) else config.get("max_position_embeddings", 2048),
    )


FAMILY = Family(
    "falcon",
    build,
    CLASSES,
    Task.CAUSAL_LM,
    ("transformer.",),
    (
        "apply_residual_connection_post_layernorm",
        "num_kv_heads",
        "multi_query",
        "rope_parameters",
        "rope_scaling",
        "rope_theta",
        "max_position_embeddings",
        "num_ln_in_parallel_attn",
        "ff_factor",
    ),
    gguf=tensors_tell,
)
