"""MPT (MosaicML 2023): ALiBi, LayerNorm without bias, linear maps without bias, one fused projection.

As in transformers, whose numbers are the reference, config.json's alibi, alibi_bias_max and expansion_ratio change nothing: slopes are those of a
bias of 8, the feed-forward is four times wider. A file that was trained otherwise does not fit its tensors and is refused.
"""

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
    return {"attn_config": {"clip_qkv": config.get("clip_qkv")}, "no_bias": True}


def attention_spec(config, hidden, heads):
    """Of the nested attn_config, in which only clipping and the scale may vary."""
    settings = Config(config.get("attn_config") or {}, f"{config.name}: attn_config")
    settings.refuse("attn_type", "multihead_attention")
    for key in ("qk_ln", "prefix_lm", "attn_uses_sequence_id"):
        settings.refuse(key, False)
    size = hidden // heads
    slopes = alibi_slopes(heads, config.get("alibi_bias_max", 8))
    scale = settings.get("softmax_scale", size**-0.5)
    clip = settings.get("clip_qkv") or None
    settings.finish(("attn_impl", "alibi", "alibi_bias_max"))
    return AttentionSpec(heads, heads, size, scale, Mask.CAUSAL, positions=Alibi(tuple(slopes.tolist())), clip_qkv=clip)


def build(config, source, task):
    config.refuse("no_bias", True)
    config.refuse("logit_scale")
    config.refuse("norm_type", "low_precision_layernorm", "layernorm")
    hidden, count = config["d_model"], config.get("max_seq_len", 2048)
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_epsilon", 1e-5))
    ffn = FeedForwardSpec(config.get("d_ff", 4 * hidden), Activation.GELU)
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
    ("expansion_ratio", "embedding_fraction", "init_config", "init_device", "learned_pos_emb", "verbose"),
    gguf=tensors_tell,
)
