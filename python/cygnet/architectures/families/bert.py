"""BERT (Devlin et al. 2019): post-norm encoder with learned positions and token types. RoBERTa, ELECTRA and others build on it."""

from __future__ import annotations

from cygnet.architectures.encoders import CLASSES, encoder_only, masked_head, pooled_head, pooler, token_head
from cygnet.architectures.family import Family
from cygnet.architectures.spec import (
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    LayerSpec,
    Mask,
    NormKind,
    NormSpec,
    Placement,
    PositionSpec,
    PositionTable,
    StackSpec,
    Task,
)
from cygnet.architectures.weights import Row

EMBEDDING_ROWS = (
    Row("encoder.embed.token", "embeddings.word_embeddings"),
    Row("encoder.embed.position", "embeddings.position_embeddings"),
    Row("encoder.embed.type", "embeddings.token_type_embeddings"),
    Row("encoder.embed.norm", "embeddings.LayerNorm"),
)
LAYER = "encoder.layer.{i}."
LAYER_ROWS = (
    Row("encoder.{i}.attention.query", LAYER + "attention.self.query"),
    Row("encoder.{i}.attention.key", LAYER + "attention.self.key"),
    Row("encoder.{i}.attention.value", LAYER + "attention.self.value"),
    Row("encoder.{i}.attention.output", LAYER + "attention.output.dense"),
    Row("encoder.{i}.attention_norm", LAYER + "attention.output.LayerNorm"),
    Row("encoder.{i}.ffn.up", LAYER + "intermediate.dense"),
    Row("encoder.{i}.ffn.down", LAYER + "output.dense"),
    Row("encoder.{i}.ffn_norm", LAYER + "output.LayerNorm"),
)
HEADS = (r"cls\..*", r"pooler\..*", r"classifier\..*", r"qa_outputs\..*")
IGNORED = ("directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type")


def layer_spec(config, positions=None, placement=Placement.POST):
    """A post-norm layer, or another."""
    config.refuse("is_decoder", False)
    config.refuse("add_cross_attention", False)
    config.refuse("position_embedding_type", "absolute")
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    attention = AttentionSpec(heads, heads, hidden // heads, (hidden // heads) ** -0.5, Mask.BIDIRECTIONAL, positions=positions)
    ffn = FeedForwardSpec(config["intermediate_size"], config.activation("hidden_act", "gelu"))
    return LayerSpec(attention, ffn, norm_spec(config), placement)


def norm_spec(config):
    """LayerNorm."""
    return NormSpec(NormKind.LAYER, config.get("layer_norm_eps", 1e-12))


def stack_spec(config, positions, *, width=None, types=2, layer=None, embedding_norm=True, final_norm=None, **fields):
    """Embeddings, with a norm unless it is switched off, then the layers."""
    hidden = config["hidden_size"]
    embedding = EmbeddingSpec(
        vocab_size=config["vocab_size"],
        width=width or hidden,
        positions=positions,
        type_count=config.get("type_vocab_size", types),
        norm=norm_spec(config) if embedding_norm else None,
        project=bool(width) and width != hidden,
    )
    return StackSpec(hidden, embedding, (layer or layer_spec(config),) * config["num_hidden_layers"], final_norm, **fields)


def masked(config, source):
    """Dense map, activation and norm, then the embedding and a bias."""
    at = "cls.predictions."
    tied = source.tied(config.get("tie_word_embeddings", True), at + "decoder.weight", "embeddings.word_embeddings.weight")
    return masked_head(
        *(config["vocab_size"], config["hidden_size"], config.activation("hidden_act", "gelu"), norm_spec(config), tied),
        dense=at + "transform.dense",
        norm_name=at + "transform.LayerNorm",
        decoder=at + "decoder",
        bias=(at + "bias", at + "decoder.bias"),
    )


def head_of(config, source, task):
    """The head, and the pooled vector of a bare model."""
    hidden = config["hidden_size"]
    if task is Task.ENCODER:
        return None, pooler(source, hidden)
    if task is Task.MASKED_LM:
        return masked(config, source), None
    if task is Task.SEQUENCE_CLASSIFICATION:
        return pooled_head(config, hidden, "pooler.dense", "classifier"), None
    return token_head(config, task), None


def build(config, source, task):
    count = config.get("max_position_embeddings", 512)
    stack = stack_spec(config, PositionSpec(PositionTable.LEARNED, count))
    head, pooled = head_of(config, source, task)
    rows = (*EMBEDDING_ROWS, *LAYER_ROWS)
    return encoder_only(config, task, family="bert", stack=stack, rows=rows, head=head, pooler=pooled, max_positions=count, ignored=HEADS)


def tensors_tell(config, weights):
    """GGUF gives the number of token types and positions by their tables alone."""
    return {"type_vocab_size": weights["token_types.weight"].shape[0], "max_position_embeddings": weights["position_embd.weight"].shape[0]}


FAMILY = Family("bert", build, CLASSES, Task.ENCODER, ("bert.",), IGNORED, tensors_tell)
