"""OPT (Zhang et al. 2022): learned positions from row 2, pre- or post-norm, optionally narrower embeddings behind projections."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, decoder_only
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
    Task,
)
from cygnet.architectures.transforms import ones, plain
from cygnet.architectures.weights import Row

OFFSET = 2


def rows(bias, affine):
    """The weight table; norms without weights are ones."""
    norms = {
        "decoder.{i}.attention_norm": "layers.{i}.self_attn_layer_norm",
        "decoder.{i}.ffn_norm": "layers.{i}.final_layer_norm",
        "decoder.final_norm": "final_layer_norm",
    }
    return (
        Row("decoder.embed.token", "embed_tokens"),
        Row("decoder.embed.position", "embed_positions"),
        Row("decoder.embed.project", "project_in", bias=False),
        Row("decoder.final_project", "project_out", bias=False),
        *(Row(ours, theirs if affine else (), plain if affine else ones, bias=affine) for ours, theirs in norms.items()),
        Row("decoder.{i}.attention.query", "layers.{i}.self_attn.q_proj", bias=bias),
        Row("decoder.{i}.attention.key", "layers.{i}.self_attn.k_proj", bias=bias),
        Row("decoder.{i}.attention.value", "layers.{i}.self_attn.v_proj", bias=bias),
        Row("decoder.{i}.attention.output", "layers.{i}.self_attn.out_proj", bias=bias),
        Row("decoder.{i}.ffn.up", "layers.{i}.fc1", bias=bias),
        Row("decoder.{i}.ffn.down", "layers.{i}.fc2", bias=bias),
    )


def build(config, source, task):
    hidden, heads, count = config["hidden_size"], config["num_attention_heads"], config.get("max_position_embeddings", 2048)
    width = config.get("word_embed_proj_dim", hidden)
    before = config.get("do_layer_norm_before", True)
    norm = NormSpec(NormKind.LAYER, 1e-5)
    attention = AttentionSpec(heads, heads, hidden // heads, (hidden // heads) ** -0.5, Mask.CAUSAL)
    ffn = FeedForwardSpec(config.get("ffn_dim", 4 * hidden), config.activation("activation_function", "relu"))
    projected = width != hidden
    embedding = EmbeddingSpec(
        config["vocab_size"],
        width,
        positions=PositionSpec(PositionTable.LEARNED, count + OFFSET, offset=OFFSET),
        project=projected,
        positions_after_project=True,
    )
    return decoder_only(
        config,
        source,
        task,
        family="opt",
        embedding=embedding,
        layers=[LayerSpec(attention, ffn, norm, Placement.PRE if before else Placement.POST)] * config["num_hidden_layers"],
        rows=rows(config.get("enable_bias", True), config.get("layer_norm_elementwise_affine", True)),
        final_norm=norm if before and not config.get("_remove_final_layer_norm", False) else None,
        hidden_size=hidden,
        tie_default=True,
        max_positions=count,
        final_project=projected,
    )


FAMILY = Family("opt", build, CLASSES, Task.CAUSAL_LM, ("model.decoder.", "decoder."))
