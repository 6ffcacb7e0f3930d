"""DINOv2 (Oquab et al. 2023), also with registers (Darcet et al. 2023): ViT whose sublayers are scaled feature by feature."""

from __future__ import annotations

from dataclasses import replace

from cygnet.architectures.families.bert import norm_spec
from cygnet.architectures.families.vit import AT, CLASSES, PARTS, finish, layer_spec, stack_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Activation, FeedForwardSpec, HeadSpec, HeadStep, Pool, Task
from cygnet.architectures.tokens import labels
from cygnet.architectures.transforms import flattened, part_of, scaled_rows, stacked, with_gap
from cygnet.architectures.weights import Row


def rows(config, registers):
    """The weight table; the scales are folded into the maps before them."""
    bias, first, second = config.get("qkv_bias", True), (AT + "layer_scale1.lambda1",), (AT + "layer_scale2.lambda1",)
    more = dict(transform=stacked, also=("embeddings.register_tokens",)) if registers else {}
    if config.get("use_swiglu_ffn", False):
        inner = [Row("encoder.{i}.ffn." + name, AT + "mlp.weights_in", part_of(place, 2)) for place, name in enumerate(("gate", "up"))]
        inner.append(Row("encoder.{i}.ffn.down", AT + "mlp.weights_out", scaled_rows, also=second))
    else:
        inner = [Row("encoder.{i}.ffn.up", AT + "mlp.fc1"), Row("encoder.{i}.ffn.down", AT + "mlp.fc2", scaled_rows, also=second)]
    return (
        Row("encoder.embed.patch", "embeddings.patch_embeddings.projection", flattened),
        Row("encoder.embed.class", "embeddings.cls_token", **more),
        Row("encoder.embed.position", "embeddings.position_embeddings!", with_gap(1, registers)),
        *(Row(f"encoder.{{i}}.attention.{ours}", AT + theirs, bias=bias) for ours, theirs in PARTS.items()),
        Row("encoder.{i}.attention.output", AT + "attention.output.dense", scaled_rows, also=first),
        Row("encoder.{i}.attention_norm", AT + "norm1"),
        *inner,
        Row("encoder.{i}.ffn_norm", AT + "norm2"),
        Row("encoder.final_norm", "layernorm"),
    )


def feed_forward(config):
    """Plain, or gated and two thirds as wide, rounded up to a multiple of eight."""
    inner = int(config["hidden_size"] * config.get("mlp_ratio", 4))
    if config.get("use_swiglu_ffn", False):
        return FeedForwardSpec((int(inner * 2 / 3) + 7) // 8 * 8, Activation.SILU, gated=True)
    return FeedForwardSpec(inner, config.activation("hidden_act", "gelu"))


def builder(name, default_registers):
    """Family.build."""

    def build(config, source, task):
        registers = config.get("num_register_tokens", default_registers)
        norm = replace(norm_spec(config), eps=config.get("layer_norm_eps", 1e-6))
        stack = stack_spec(config, 1 + registers, layer_spec(config, feed_forward(config), norm))
        if task is not Task.IMAGE_CLASSIFICATION:
            return finish(config, task, name, stack, rows(config, registers), pooled=(HeadSpec(Pool.FIRST, ()), ()))
        pool = Pool.FIRST_AND_MEAN
        config.refuse("num_register_tokens", 0)
        head = HeadSpec(pool, (HeadStep("logits", len(labels(config))),)), (Row("head.logits", "classifier"),)
        return finish(config, task, name, stack, rows(config, registers), head)

    return build


IGNORED = (
    "apply_layernorm",
    "reshape_hidden_states",
    "out_features",
    "out_indices",
    "stage_names",
    "layerscale_value",
    "use_mask_token",
    "hidden_act",
)
FAMILY = Family("dinov2", builder("dinov2", 0), CLASSES, Task.ENCODER, ("dinov2.",), IGNORED)
REGISTERS = Family(
    "dinov2_with_registers", builder("dinov2_with_registers", 4), {"Model": Task.ENCODER}, Task.ENCODER, ("dinov2_with_registers.",), IGNORED
)
