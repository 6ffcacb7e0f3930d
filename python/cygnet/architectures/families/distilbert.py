"""DistilBERT (Sanh et al. 2019): BERT without token types and pooler, under names of its own."""

from __future__ import annotations

from cygnet.architectures.encoders import CLASSES, encoder_only, masked_head, pooled_head, token_head
from cygnet.architectures.family import Family
from cygnet.architectures.spec import (
    Activation,
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

AT = "transformer.layer.{i}."
ROWS = (
    Row("encoder.embed.token", "embeddings.word_embeddings"),
    Row("encoder.embed.position", "embeddings.position_embeddings"),
    Row("encoder.embed.norm", "embeddings.LayerNorm"),
    Row("encoder.{i}.attention.query", AT + "attention.q_lin"),
    Row("encoder.{i}.attention.key", AT + "attention.k_lin"),
    Row("encoder.{i}.attention.value", AT + "attention.v_lin"),
    Row("encoder.{i}.attention.output", AT + "attention.out_lin"),
    Row("encoder.{i}.attention_norm", AT + "sa_layer_norm"),
    Row("encoder.{i}.ffn.up", AT + "ffn.lin1"),
    Row("encoder.{i}.ffn.down", AT + "ffn.lin2"),
    Row("encoder.{i}.ffn_norm", AT + "output_layer_norm"),
)
HEADS = (r"vocab_.*", r"pre_classifier\..*", r"classifier\..*", r"qa_outputs\..*", r"distilbert_classifier\..*")


def build(config, source, task):
    width, heads, count = config["dim"], config["n_heads"], config.get("max_position_embeddings", 512)
    norm, act = NormSpec(NormKind.LAYER, 1e-12), config.activation("activation", "gelu")
    attention = AttentionSpec(heads, heads, width // heads, (width // heads) ** -0.5, Mask.BIDIRECTIONAL)
    layer = LayerSpec(attention, FeedForwardSpec(config["hidden_dim"], act), norm, Placement.POST)
    embedding = EmbeddingSpec(config["vocab_size"], width, positions=PositionSpec(PositionTable.LEARNED, count), norm=norm)
    stack = StackSpec(width, embedding, (layer,) * config["n_layers"], None)
    head = None
    if task is Task.MASKED_LM:
        tied = source.tied(config.get("tie_word_embeddings", True), "vocab_projector.weight", "embeddings.word_embeddings.weight")
        names = dict(dense="vocab_transform", norm_name="vocab_layer_norm", decoder="vocab_projector", bias=True)
        head = masked_head(config["vocab_size"], width, act, norm, tied, **names)
    elif task is Task.SEQUENCE_CLASSIFICATION:
        head = pooled_head(config, width, "pre_classifier", "classifier", Activation.RELU)
    elif task is not Task.ENCODER:
        head = token_head(config, task)
    return encoder_only(config, task, family="distilbert", stack=stack, rows=ROWS, head=head, max_positions=count, ignored=HEADS)


FAMILY = Family("distilbert", build, CLASSES, Task.ENCODER, ("distilbert.",), ("sinusoidal_pos_embds", "tie_weights_"))
