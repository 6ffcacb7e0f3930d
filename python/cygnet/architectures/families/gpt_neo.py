"""GPT-Neo (Black et al. 2021): GPT-2 with separate unscaled projections and local attention on some layers."""

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
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel

AT = "h.{i}.attn.attention."
ROWS = (
    Row("decoder.embed.token", "wte"),
    Row("decoder.embed.position", "wpe"),
    Row("decoder.{i}.attention_norm", "h.{i}.ln_1"),
    Row("decoder.{i}.attention.query", AT + "q_proj", bias=False),
    Row("decoder.{i}.attention.key", AT + "k_proj", bias=False),
    Row("decoder.{i}.attention.value", AT + "v_proj", bias=False),
    Row("decoder.{i}.attention.output", AT + "out_proj"),
    Row("decoder.{i}.ffn_norm", "h.{i}.ln_2"),
    Row("decoder.{i}.ffn.up", "h.{i}.mlp.c_fc"),
    Row("decoder.{i}.ffn.down", "h.{i}.mlp.c_proj"),
    Row("decoder.final_norm", "ln_f"),
)


def attention_kinds(config):
    """ "global" or "local" for each layer."""
    kinds = [kind for group, times in config.get("attention_types") or () for _ in range(times) for kind in group]
    kinds = config.get("attention_layers") or kinds or ["global", "local"] * (config["num_layers"] // 2)
    if len(kinds) != config["num_layers"] or set(kinds) - {"global", "local"}:
        raise UnsupportedModel(f"config of {config.name}: attention_types {kinds} do not name global or local for each of the layers")
    return kinds


def build(config, source, task):
    hidden, heads, count = config["hidden_size"], config["num_heads"], config.get("max_position_embeddings", 2048)
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_epsilon", 1e-5))
    ffn = FeedForwardSpec(config.get("intermediate_size", 4 * hidden), config.activation("activation_function", "gelu_new"))
    window = config.get("window_size", 256)
    layers = [
        LayerSpec(AttentionSpec(heads, heads, hidden // heads, 1.0, Mask.CAUSAL, window if kind == "local" else None), ffn, norm, Placement.PRE)
        for kind in attention_kinds(config)
    ]
    return decoder_only(
        config,
        source,
        task,
        family="gpt_neo",
        embedding=EmbeddingSpec(config["vocab_size"], hidden, positions=PositionSpec(PositionTable.LEARNED, count)),
        layers=layers,
        rows=ROWS,
        final_norm=norm,
        hidden_size=hidden,
        tie_default=True,
        token_name="wte",
        max_positions=count,
        ignored=(r"h\.\d+\.attn\.attention\.bias",),
    )


FAMILY = Family("gpt_neo", build, CLASSES, Task.CAUSAL_LM, ("transformer.",))
