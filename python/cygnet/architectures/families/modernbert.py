"""ModernBERT (Warner et al. 2024): pre-norm, rotary positions, gated feed-forward, local attention on two layers of three."""

from __future__ import annotations

from cygnet.architectures.decoders import layer_types
from cygnet.architectures.encoders import CLASSES, encoder_only
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import (
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    HeadSpec,
    HeadStep,
    LayerSpec,
    Mask,
    NormKind,
    NormSpec,
    Placement,
    Pool,
    Rotary,
    StackSpec,
    Task,
)
from cygnet.architectures.tokens import labels
from cygnet.architectures.transforms import part_of
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel

POOLS = {"cls": Pool.FIRST, "mean": Pool.MEAN}
HEADS = (r"head\..*", r"decoder\..*", r"classifier\..*")


def rows(config):
    """The weight table of the stack."""
    norm, bias, mlp = config.get("norm_bias", False), config.get("attention_bias", False), config.get("mlp_bias", False)
    at = "layers.{i}."
    return (
        Row("encoder.embed.token", "embeddings.tok_embeddings"),
        Row("encoder.embed.norm", "embeddings.norm", bias=norm),
        Row("encoder.{i}.attention_norm", at + "attn_norm", bias=norm),
        *(Row(f"encoder.{{i}}.attention.{name}", at + "attn.Wqkv", part_of(n, 3), bias=bias) for n, name in enumerate(("query", "key", "value"))),
        Row("encoder.{i}.attention.output", at + "attn.Wo", bias=bias),
        Row("encoder.{i}.ffn_norm", at + "mlp_norm", bias=norm),
        Row("encoder.{i}.ffn.gate", at + "mlp.Wi", part_of(0, 2), bias=mlp),
        Row("encoder.{i}.ffn.up", at + "mlp.Wi", part_of(1, 2), bias=mlp),
        Row("encoder.{i}.ffn.down", at + "mlp.Wo", bias=mlp),
        Row("encoder.final_norm", "final_norm", bias=norm),
    )


def positions_of(config, kind, size):
    """Each kind of layer has its own base."""
    own, theta = ("global_rope_theta", 160000.0) if kind == "full_attention" else ("local_rope_theta", 10000.0)
    theta = config.first(own, "global_rope_theta", default=theta)
    if "rope_parameters" in config:
        return rotary(config, size, theta=theta, layer_type=kind)
    return Rotary(size, theta, max_positions=config.get("max_position_embeddings", 8192))


def layers(config, norm):
    """Full attention first, then by turns; the first layer's attention reads the normed embeddings as they are."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    every, reach = config.get("global_attn_every_n_layers", 3), config.get("local_attention", 128) // 2
    size = hidden // heads
    ffn = FeedForwardSpec(config["intermediate_size"], config.activation("hidden_activation", "gelu"), gated=True)
    kinds = layer_types(config, config["num_hidden_layers"], lambda index: "sliding_attention" if index % every else "full_attention")
    for index, kind in enumerate(kinds):
        window = reach + 1 if kind == "sliding_attention" else None
        attention = AttentionSpec(heads, heads, size, size**-0.5, Mask.BIDIRECTIONAL, window, positions_of(config, kind, size))
        yield LayerSpec(attention, ffn, norm, Placement.PRE, attention_norm=index > 0)


def head_of(config, source, task, norm):
    """Dense map, activation and norm, then the vocabulary or the labels."""
    hidden, pooling = config["hidden_size"], config.get("classifier_pooling", "cls")
    if pooling not in POOLS:
        raise UnsupportedModel(f"config of {config.name}: classifier_pooling = {pooling!r} is not known (known: {', '.join(POOLS)})")
    act = config.activation("classifier_activation", "gelu")
    dense = (
        Row("head.dense", "head.dense", bias=config.get("classifier_bias", False)),
        Row("head.norm", "head.norm", bias=config.get("norm_bias", False)),
    )
    steps = (HeadStep("dense", hidden, act), HeadStep("norm", norm=norm))
    if task is Task.MASKED_LM:
        tied = source.tied(config.get("tie_word_embeddings", True), "decoder.weight", "embeddings.tok_embeddings.weight")
        last, row = HeadStep("logits", config["vocab_size"], tied=tied), Row("head.logits", "decoder", bias=config.get("decoder_bias", True))
        return HeadSpec(Pool.ALL, (*steps, last)), (*dense, row)
    count = 2 if task is Task.QUESTION_ANSWERING else len(labels(config))
    pool = POOLS[pooling] if task is Task.SEQUENCE_CLASSIFICATION else Pool.ALL
    return HeadSpec(pool, (*steps, HeadStep("logits", count))), (*dense, Row("head.logits", "classifier"))


def build(config, source, task):
    config.refuse("embedding_norm", True)
    norm = NormSpec(NormKind.LAYER, config.get("norm_eps", 1e-5))
    embedding = EmbeddingSpec(config["vocab_size"], config["hidden_size"], norm=norm)
    stack = StackSpec(config["hidden_size"], embedding, tuple(layers(config, norm)), norm)
    head = None if task is Task.ENCODER else head_of(config, source, task, norm)
    longest = config.get("max_position_embeddings", 8192)
    return encoder_only(config, task, family="modernbert", stack=stack, rows=rows(config), head=head, max_positions=longest, ignored=HEADS)


IGNORED = (
    *("classifier_pooling", "classifier_activation", "classifier_bias", "decoder_bias", "norm_bias", "sparse_prediction", "sparse_pred_ignore_index"),
    *(
        "position_embedding_type",
        "repad_logits_with_grad",
        "compile_model",
        "layer_norm_eps",
        "global_rope_theta",
        "local_rope_theta",
        "embedding_norm",
    ),
)
FAMILY = Family("modernbert", build, CLASSES, Task.ENCODER, ("model.",), IGNORED)
