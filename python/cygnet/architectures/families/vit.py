"""Vision Transformer (Dosovitskiy et al. 2021): image patches and a class token through a pre-norm encoder."""

from __future__ import annotations

from cygnet.architectures.encoders import encoder_only, pooler
from cygnet.architectures.families.bert import norm_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import (
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    HeadSpec,
    HeadStep,
    LayerSpec,
    Mask,
    PatchSpec,
    Placement,
    Pool,
    PositionSpec,
    PositionTable,
    StackSpec,
    Task,
)
from cygnet.architectures.tokens import labels
from cygnet.architectures.transforms import flattened
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel

AT = "encoder.layer.{i}."
PARTS = {"query": "attention.attention.query", "key": "attention.attention.key", "value": "attention.attention.value"}
HEADS = (r"classifier\..*", r"pooler\..*", r"embeddings\.mask_token", r"decoder\..*")


def rows(config):
    """The weight table."""
    bias = config.get("qkv_bias", True)
    return (
        Row("encoder.embed.patch", "embeddings.patch_embeddings.projection", flattened),
        Row("encoder.embed.class", "embeddings.cls_token"),
        Row("encoder.embed.position", "embeddings.position_embeddings!"),
        *(Row(f"encoder.{{i}}.attention.{ours}", AT + theirs, bias=bias) for ours, theirs in PARTS.items()),
        Row("encoder.{i}.attention.output", AT + "attention.output.dense"),
        Row("encoder.{i}.attention_norm", AT + "layernorm_before"),
        Row("encoder.{i}.ffn.up", AT + "intermediate.dense"),
        Row("encoder.{i}.ffn.down", AT + "output.dense"),
        Row("encoder.{i}.ffn_norm", AT + "layernorm_after"),
        Row("encoder.final_norm", "layernorm"),
    )


def side(config, key, default):
    """Length of a square's side."""
    value = config.get(key, default)
    sides = set(value) if isinstance(value, (list, tuple)) else {value}
    if len(sides) != 1:
        raise UnsupportedModel(f"config of {config.name}: {key} = {value}: only squares are supported")
    return sides.pop()


def build(config, source, task):
    hidden, heads, norm = config["hidden_size"], config["num_attention_heads"], norm_spec(config)
    patches = PatchSpec(side(config, "image_size", 224), side(config, "patch_size", 16), config.get("num_channels", 3))
    count = (patches.image_size // patches.patch_size) ** 2 + 1
    attention = AttentionSpec(heads, heads, hidden // heads, (hidden // heads) ** -0.5, Mask.BIDIRECTIONAL)
    ffn = FeedForwardSpec(config["intermediate_size"], config.activation("hidden_act", "gelu"))
    embedding = EmbeddingSpec(0, hidden, positions=PositionSpec(PositionTable.LEARNED, count), patches=patches)
    stack = StackSpec(hidden, embedding, (LayerSpec(attention, ffn, norm, Placement.PRE),) * config["num_hidden_layers"], norm)
    head = pooled = None
    if task is Task.IMAGE_CLASSIFICATION:
        head = HeadSpec(Pool.FIRST, (HeadStep("logits", len(labels(config))),)), (Row("head.logits", "classifier"),)
    else:
        width = config.get("pooler_output_size", hidden)
        pooled = pooler(source, width, activation=config.activation("pooler_act", "tanh"))
    table = rows(config)
    return encoder_only(config, task, family="vit", stack=stack, rows=table, head=head, pooler=pooled, max_positions=count, ignored=HEADS)


CLASSES = {"ForImageClassification": Task.IMAGE_CLASSIFICATION, "Model": Task.ENCODER}
FAMILY = Family("vit", build, CLASSES, Task.ENCODER, ("vit.",), ("encoder_stride", "pooler_output_size", "pooler_act"))
