"""Vision Transformer (Dosovitskiy et al. 2021), DeiT (Touvron et al. 2021): image patches and a class token through a pre-norm encoder."""

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
from cygnet.architectures.transforms import flattened, stacked
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel

AT = "encoder.layer.{i}."
PARTS = {"query": "attention.attention.query", "key": "attention.attention.key", "value": "attention.attention.value"}
HEADS = (r"classifier\..*", r"pooler\..*", r"embeddings\.mask_token", r"decoder\..*")


def rows(config, front=1):
    """The weight table; DeiT has a second row in front of the patches, for distillation."""
    bias = config.get("qkv_bias", True)
    second = dict(transform=stacked, also=("embeddings.distillation_token",)) if front == 2 else {}
    return (
        Row("encoder.embed.patch", "embeddings.patch_embeddings.projection", flattened),
        Row("encoder.embed.class", "embeddings.cls_token", **second),
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


def stack_spec(config, front, layer):
    """Patches behind `front` rows, positions for all of them, equal layers, a norm at the end."""
    patches = PatchSpec(side(config, "image_size", 224), side(config, "patch_size", 16), config.get("num_channels", 3), front)
    count = (patches.image_size // patches.patch_size) ** 2 + front
    embedding = EmbeddingSpec(0, config["hidden_size"], positions=PositionSpec(PositionTable.LEARNED, count), patches=patches)
    return StackSpec(config["hidden_size"], embedding, (layer,) * config["num_hidden_layers"], layer.norm)


def layer_spec(config, ffn, norm):
    """A pre-norm layer."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    return LayerSpec(AttentionSpec(heads, heads, hidden // heads, (hidden // heads) ** -0.5, Mask.BIDIRECTIONAL), ffn, norm, Placement.PRE)


def finish(config, task, family, stack, table, head=None, pooled=None):
    """The whole model."""
    count = stack.embedding.positions.count
    return encoder_only(config, task, family=family, stack=stack, rows=table, head=head, pooler=pooled, max_positions=count, ignored=HEADS)


def builder(name, front):
    """Family.build for so many rows in front of the patches."""

    def build(config, source, task):
        ffn = FeedForwardSpec(config["intermediate_size"], config.activation("hidden_act", "gelu"))
        stack = stack_spec(config, front, layer_spec(config, ffn, norm_spec(config)))
        head = pooled = None
        if task is Task.IMAGE_CLASSIFICATION:
            head = HeadSpec(Pool.FIRST, (HeadStep("logits", len(labels(config))),)), (Row("head.logits", "classifier"),)
        else:
            width = config.get("pooler_output_size", config["hidden_size"])
            pooled = pooler(source, width, activation=config.activation("pooler_act", "tanh"))
        return finish(config, task, name, stack, rows(config, front), head, pooled)

    return build


CLASSES = {"ForImageClassification": Task.IMAGE_CLASSIFICATION, "Model": Task.ENCODER}
IGNORED = ("encoder_stride", "pooler_output_size", "pooler_act")
FAMILY = Family("vit", builder("vit", 1), CLASSES, Task.ENCODER, ("vit.",), IGNORED)
DEIT = Family("deit", builder("deit", 2), CLASSES, Task.ENCODER, ("deit.",), IGNORED)
