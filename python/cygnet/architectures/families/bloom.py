"""BLOOM (BigScience 2022): ALiBi, LayerNorm behind the embeddings, queries, keys and values fused head by head."""

from __future__ import annotations

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
from cygnet.architectures.transforms import heads_of
from cygnet.architectures.weights import Row
from cygnet.reference.positions import alibi_slopes

ROWS = (
    Row("decoder.embed.token", "word_embeddings"),
    Row("decoder.embed.norm", "word_embeddings_layernorm"),
    Row("decoder.{i}.attention_norm", "h.{i}.input_layernorm"),
    Row("decoder.{i}.attention.output", "h.{i}.self_attention.dense"),
    Row("decoder.{i}.ffn_norm", "h.{i}.post_attention_layernorm"),
    Row("decoder.{i}.ffn.up", "h.{i}.mlp.dense_h_to_4h"),
    Row("decoder.{i}.ffn.down", "h.{i}.mlp.dense_4h_to_h"),
    Row("decoder.final_norm", "ln_f"),
)


def build(config, source, task):
    placement = Placement.NORMED if config.get("apply_residual_connection_post_layernorm", False) else Placement.PRE
    hidden = config.first("hidden_size", "n_embed", default=64)
    heads, count = config.first("n_head", "num_attention_heads", default=8), config.first("n_layer", "num_hidden_layers", default=2)
    size = hidden // heads
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_epsilon", 1e-5))
    attention = AttentionSpec(heads, heads, size, size**-0.5, Mask.CAUSAL, positions=Alibi(tuple(alibi_slopes(heads).tolist())))
    fused = [
        Row(f"decoder.{{i}}.attention.{name}", "h.{i}.self_attention.query_key_value", heads_of(part * size, size, 3 * size))
        for part, name in enumerate(("query", "key", "value"))
    ]
    return decoder_only(
        config,
        source,
        task,
        family="bloom",
        embedding=EmbeddingSpec(config["vocab_size"], hidden, norm=norm),
        layers=[LayerSpec(attention, FeedForwardSpec(4 * hidden, Activation.GELU_TANH), norm, placement)] * count,
        rows=(*ROWS, *fused),
        final_norm=norm,
        hidden_size=hidden,
        tie_default=True,
        token_name="word_embeddings",
    )


FAMILY = Family(
    "bloom",
    build,
    CLASSES,
    Task.CAUSAL_LM,
    ("transformer.",),
    (
        "seq_length",
        "n_positions",
        "offset_alibi",
        "attention_softmax_in_fp32",
        "masked_softmax_fusion",
        "bias_dropout_fusion",
        "skip_bias_add",
        "skip_bias_add_qkv",
        "slow_but_exact",
        "unk_token_id",
        "embed_dropout",
    ),
)
