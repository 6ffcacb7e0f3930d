"""ALBERT (Lan et al. 2020): narrow embeddings behind a projection, and layers that share their weights in groups."""

from __future__ import annotations

from cygnet.architectures.encoders import CLASSES, encoder_only, masked_head, pooled_head, pooler, token_head
from cygnet.architectures.families.bert import EMBEDDING_ROWS, norm_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import (
    AttentionSpec,
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
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel

PARTS = {
    "attention.query": "attention.query",
    "attention.key": "attention.key",
    "attention.value": "attention.value",
    "attention.output": "attention.dense",
    "attention_norm": "attention.LayerNorm",
    "ffn.up": "ffn",
    "ffn.down": "ffn_output",
    "ffn_norm": "full_layer_layer_norm",
}
HEADS = (r"predictions\..*", r"sop_classifier\..*", r"pooler\..*", r"classifier\..*", r"qa_outputs\..*")


def shared_layers(config):
    """For each layer that is run, whose weights it uses: groups of consecutive layers, each with one or more inner layers."""
    count, groups, inner = config["num_hidden_layers"], config.get("num_hidden_groups", 1), config.get("inner_group_num", 1)
    if min(groups, inner) < 1:
        raise UnsupportedModel(f"config of {config.name}: {groups} groups of {inner} layers hold no weights")
    return tuple(layer * groups // count * inner + step for layer in range(count) for step in range(inner)), groups, inner


def stack_spec(config, positions):
    """Embeddings, projection, shared layers."""
    config.refuse("position_embedding_type", "absolute")
    hidden, heads, norm = config["hidden_size"], config["num_attention_heads"], norm_spec(config)
    attention = AttentionSpec(heads, heads, hidden // heads, (hidden // heads) ** -0.5, Mask.BIDIRECTIONAL)
    ffn = FeedForwardSpec(config["intermediate_size"], config.activation("hidden_act", "gelu_new"))
    embedding = EmbeddingSpec(
        config["vocab_size"],
        config.get("embedding_size", 128),
        positions=PositionSpec(PositionTable.LEARNED, positions),
        type_count=config.get("type_vocab_size", 2),
        norm=norm,
        project=True,
    )
    run = shared_layers(config)[0]
    return StackSpec(hidden, embedding, (LayerSpec(attention, ffn, norm, Placement.POST),) * len(run), None, weight_layers=run)


def build(config, source, task):
    hidden, count = config["hidden_size"], config.get("max_position_embeddings", 512)
    stack, (_, groups, inner) = stack_spec(config, count), shared_layers(config)
    layers = [
        Row(f"encoder.{group * inner + step}.{ours}", f"encoder.albert_layer_groups.{group}.albert_layers.{step}.{theirs}")
        for group in range(groups)
        for step in range(inner)
        for ours, theirs in PARTS.items()
    ]
    rows = (*EMBEDDING_ROWS, Row("encoder.embed.project", "encoder.embedding_hidden_mapping_in"), *layers)
    head = pooled = None
    if task is Task.ENCODER:
        pooled = pooler(source, hidden, "pooler")
    elif task is Task.MASKED_LM:
        tied = source.tied(config.get("tie_word_embeddings", True), "predictions.decoder.weight", "embeddings.word_embeddings.weight")
        head = masked_head(
            *(config["vocab_size"], stack.embedding.width, config.activation("hidden_act", "gelu_new"), norm_spec(config), tied),
            dense="predictions.dense",
            norm_name="predictions.LayerNorm",
            decoder="predictions.decoder",
            bias=("predictions.bias", "predictions.decoder.bias"),
        )
    elif task is Task.SEQUENCE_CLASSIFICATION:
        head = pooled_head(config, hidden, "pooler", "classifier")
    else:
        head = token_head(config, task)
    return encoder_only(config, task, family="albert", stack=stack, rows=rows, head=head, pooler=pooled, max_positions=count, ignored=HEADS)


FAMILY = Family("albert", build, CLASSES, Task.ENCODER, ("albert.",), ("down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks"))
