"""MPT (MosaicML 2023): ALiBi, LayerNorm without bias, linear maps without bias, one fused projection."""

from __future__ import annotations

from cygnet.architectures.config import Config
from cygnet.architectures.decoders import CLASSES, decoder_only
from cygnet.architectures.family import Family
from cygnet.architectures.spec import (
    Activation,
    Alibi,
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    LayerSpec,
    Mask,
    NormKind,
    NormSpec,
    Placement,
    Task,
)
from cygnet.architectures.transforms import part_of
from cygnet.architectures.weights import Row
from cygnet.reference.positions import alibi_slopes

ROWS = (
    Row("decoder.embed.token", "wte"),
    Row("decoder.{i}.attention_norm", "blocks.{i}.norm_1", bias=False),
    *(Row(f"decoder.{{i}}.attention.{name}", "blocks.{i}.attn.Wqkv", part_of(n, 3), bias=False) for n, name in enumerate(("query", "key", "value"))),
    Row("decoder.{i}.attention.output", "blocks.{i}.attn.out_proj", bias=False),
    Row("decoder.{i}.ffn_norm", "blocks.{i}.norm_2", bias=False),
    Row("decoder.{i}.ffn.up", "blocks.{i}.ffn.up_proj", bias=False),
    Row("decoder.{i}.ffn.down", "blocks.{i}.ffn.down_proj", bias=False),
    Row("decoder.final_norm", "norm_f", bias=False),
)


def tensors_tell(config, weights):
    """GGUF keeps the settings of attention with the others."""
    known = {"clip_qkv": config.get("clip_qkv"), "alibi_bias_max": config.get("alibi_bias_max", 8)}
    return {"attn_config": known, "no_bias": True, "expansion_ratio": config["d_ff"] / config["d_model"]}


def attention_spec(config, hidden, heads):
    """Of the nested attn_config, in which only ALiBi, clipping and the scale may vary."""
    settings = Config(config.get("attn_config") or {}, f"{config.name}: attn_config")
    settings.refuse("attn_type", "multihead_attention")
    settings.refuse("alibi", True)
    for key in ("qk_ln", "prefix_lm", "attn_uses_sequence_id"):
        settings.refuse(key, False)
    size = hidden // heads
    slopes = alibi_slopes(heads, settings.get("alibi_bias_max", 8))
    scale = settings.get("softmax_scale", size**-0.5)
    clip = settings.get("clip_qkv") or None
    settings.finish(("attn_impl",))
    return AttentionSpec(heads, heads, size, scale, Mask.CAUSAL, positions=Alibi(tuple(slopes.tolist())), clip_qkv=clip)


def build(config, source, task):
    config.refuse("no_bias", True)
    config.refuse("logit_scale")
    config.refuse("norm_type", "low_precision_layernorm", "layernorm")
    hidden, count = config["d_model"], config.get("max_seq_len", 2048)
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_epsilon", 1e-5))
    ffn = FeedForwardSpec(int(config.get("expansion_ratio", 4) * hidden), Activation.GELU)
    layer = LayerSpec(attention_spec(config, hidden, config["n_heads"]), ffn, norm, Placement.PRE)
    return decoder_only(
        config,
        source,
        task,
        family="mpt",
        embedding=EmbeddingSpec(config["vocab_size"], hidden),
        layers=[layer] * config["n_layers"],
        rows=ROWS,
        final_norm=norm,
        hidden_size=hidden,
        tie_default=True,
        token_name="wte",
        max_positions=count,
    )


FAMILY = Family(
    "mpt",
    build,
    CLASSES,
    Task.CAUSAL_LM,
    ("transformer.",),
    ("embedding_fraction", "init_config", "init_device", "learned_pos_emb", "verbose"),
    gguf=tensors_tell,
)
