"""DeBERTa v2 and v3 (He et al. 2021, 2023): disentangled attention over content and relative positions."""

from __future__ import annotations

from cygnet.architectures.encoders import CLASSES, encoder_only, masked_head, pooled_head, token_head
from cygnet.architectures.families.bert import EMBEDDING_ROWS, norm_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import (
    AttentionSpec,
    ConvolutionSpec,
    Disentangled,
    EmbeddingSpec,
    FeedForwardSpec,
    LayerSpec,
    Mask,
    Placement,
    PositionSpec,
    PositionTable,
    StackSpec,
    Task,
)
from cygnet.architectures.transforms import convolution, layer_normed
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel

AT = "encoder.layer.{i}."
ROWS = (
    *EMBEDDING_ROWS,
    Row("encoder.{i}.attention.query", AT + "attention.self.query_proj"),
    Row("encoder.{i}.attention.key", AT + "attention.self.key_proj"),
    Row("encoder.{i}.attention.value", AT + "attention.self.value_proj"),
    Row("encoder.{i}.attention.position_query", AT + "attention.self.pos_query_proj"),
    Row("encoder.{i}.attention.position_key", AT + "attention.self.pos_key_proj"),
    Row("encoder.{i}.attention.output", AT + "attention.output.dense"),
    Row("encoder.{i}.attention_norm", AT + "attention.output.LayerNorm"),
    Row("encoder.{i}.ffn.up", AT + "intermediate.dense"),
    Row("encoder.{i}.ffn.down", AT + "output.dense"),
    Row("encoder.{i}.ffn_norm", AT + "output.LayerNorm"),
)
HEADS = (r"cls\..*", r"lm_predictions\..*", r"mask_predictions\..*", r"pooler\..*", r"classifier\..*", r"qa_outputs\..*")


def position_kinds(config):
    """Which of c2p and p2c scores are added; files give a list or "c2p|p2c"."""
    kinds = config.get("pos_att_type") or []
    kinds = [kind.strip() for kind in kinds.lower().split("|")] if isinstance(kinds, str) else list(kinds)
    if set(kinds) - {"c2p", "p2c"}:
        raise UnsupportedModel(f"config of {config.name}: pos_att_type {kinds} is not supported (known: c2p, p2c)")
    return kinds


def disentangled(config, kinds):
    """The relative positions, or None where attention has none."""
    shared = config.get("share_att_key", False)
    longest, buckets = config.get("max_relative_positions", -1), config.get("position_buckets", -1)
    longest = longest if longest >= 1 else config.get("max_position_embeddings", 512)
    if not config.get("relative_attention", False):
        return None
    buckets = max(buckets, 0)
    return Disentangled(buckets or longest, buckets, longest, "c2p" in kinds, "p2c" in kinds, shared)


def convolution_spec(config, norm):
    """The convolution behind the first layer, where there is one."""
    size = config.get("conv_kernel_size", 0)
    if size and size % 2 == 0:
        raise UnsupportedModel(f"config of {config.name}: conv_kernel_size = {size}: an odd number of positions is expected")
    return ConvolutionSpec(size, config.activation("conv_act", "tanh"), norm) if size else None


def relative_rows(config):
    """The table of relative positions, behind its norm where there is one."""
    table = "encoder.rel_embeddings.weight"
    if "layer_norm" not in config.get("norm_rel_ebd", "none").lower():
        return (Row("encoder.disentangled", table.removesuffix(".weight")),)
    also = ("encoder.LayerNorm.weight", "encoder.LayerNorm.bias")
    return (Row("encoder.disentangled", table.removesuffix(".weight"), layer_normed(norm_spec(config).eps), also=also),)


def masked(config, source, hidden, act):
    """Of the first files (under cls) or of those of the authors (under lm_predictions)."""
    old, own = "cls.predictions.", "lm_predictions.lm_head."
    tied = source.tied(config.get("tie_word_embeddings", True), old + "decoder.weight", "embeddings.word_embeddings.weight")
    theirs = own + "dense.weight" in source
    return masked_head(
        *(config["vocab_size"], hidden, act, norm_spec(config), tied or theirs),
        dense=own + "dense" if theirs else old + "transform.dense",
        norm_name=own + "LayerNorm" if theirs else old + "transform.LayerNorm",
        decoder=old + "decoder",
        bias=own + "bias" if theirs else (old + "bias", old + "decoder.bias"),
    )


def build(config, source, task):
    hidden, heads, count = config["hidden_size"], config["num_attention_heads"], config.get("max_position_embeddings", 512)
    config.refuse("embedding_size", hidden)
    norm, act = norm_spec(config), config.activation("hidden_act", "gelu")
    kinds = position_kinds(config)
    size = config.get("attention_head_size", hidden // heads)
    scale = (size * (1 + len(set(kinds)))) ** -0.5
    attention = AttentionSpec(heads, heads, size, scale, Mask.BIDIRECTIONAL, positions=disentangled(config, kinds))
    layer = LayerSpec(attention, FeedForwardSpec(config["intermediate_size"], act), norm, Placement.POST)
    absolute = config.get("position_biased_input", True)
    embedding = EmbeddingSpec(
        config["vocab_size"],
        hidden,
        positions=PositionSpec(PositionTable.LEARNED, count) if absolute else None,
        type_count=config.get("type_vocab_size", 0),
        norm=norm,
    )
    stack = StackSpec(hidden, embedding, (layer,) * config["num_hidden_layers"], None, convolution=convolution_spec(config, norm))
    head = None
    if task is Task.MASKED_LM:
        head = masked(config, source, hidden, act)
    elif task is Task.SEQUENCE_CLASSIFICATION:
        width = config.get("pooler_hidden_size", hidden)
        head = pooled_head(config, width, "pooler.dense", "classifier", config.activation("pooler_hidden_act", "gelu"))
    elif task is not Task.ENCODER:
        head = token_head(config, task)
    kernel = Row("encoder.convolution", "encoder.conv.conv", convolution(config.get("conv_groups", 1)))
    rows = (*ROWS, *relative_rows(config), kernel, Row("encoder.convolution_norm", "encoder.conv.LayerNorm"))
    # Relative positions are clamped: without absolute ones no length is too long.
    longest = count if absolute else None
    return encoder_only(config, task, family="deberta_v2", stack=stack, rows=rows, head=head, max_positions=longest, ignored=HEADS)


IGNORED = ("legacy", "conv_act", "conv_groups", "pooler_hidden_size", "pooler_hidden_act", "padding_idx", "position_biased_input")
FAMILY = Family("deberta_v2", build, CLASSES, Task.ENCODER, ("deberta.",), IGNORED)
