"""GPT-2 (Radford et al. 2019): pre-norm, learned positions, fused query-key-value stored (in, out) as Conv1D does."""

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
from cygnet.architectures.transforms import transposed
from cygnet.architectures.weights import Row

AT = "decoder.{i}."
ROWS = (
    Row("decoder.embed.token", "wte"),
    Row("decoder.embed.position", "wpe"),
    Row(AT + "attention_norm", "h.{i}.ln_1"),
    Row(AT + "attention.query", "h.{i}.attn.c_attn", transposed(0, 3)),
    Row(AT + "attention.key", "h.{i}.attn.c_attn", transposed(1, 3)),
    Row(AT + "attention.value", "h.{i}.attn.c_attn", transposed(2, 3)),
    Row(AT + "attention.output", "h.{i}.attn.c_proj", transposed()),
    Row(AT + "ffn_norm", "h.{i}.ln_2"),
    Row(AT + "ffn.up", "h.{i}.mlp.c_fc", transposed()),
    Row(AT + "ffn.down", "h.{i}.mlp.c_proj", transposed()),
    Row("decoder.final_norm", "ln_f"),
)
CAUSAL_MASK = (r"h\.\d+\.attn\.bias",)


def attention_scale(config, head_dim, index):
    """1 / sqrt(head_dim) unless switched off, divided by the layer's number where that is asked for."""
    scale = head_dim**-0.5 if config.get("scale_attn_weights", True) else 1.0
    return scale / (index + 1) if config.get("scale_attn_by_inverse_layer_idx", False) else scale


def build(config, source, task):
    config.refuse("add_cross_attention", False)
    hidden, heads, positions = config["n_embd"], config["n_head"], config.get("n_positions", 1024)
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_epsilon", 1e-5))
    ffn = FeedForwardSpec(config.get("n_inner", 4 * hidden), config.activation("activation_function", "gelu_new"))
    size = hidden // heads
    layers = [
        LayerSpec(AttentionSpec(heads, heads, size, attention_scale(config, size, index), Mask.CAUSAL), ffn, norm, Placement.PRE)
        for index in range(config["n_layer"])
    ]
    table = PositionSpec(PositionTable.LEARNED, positions)
    return decoder_only(
        config,
        source,
        task,
        family="gpt2",
        embedding=EmbeddingSpec(config["vocab_size"], hidden, positions=table),
        layers=layers,
        rows=ROWS,
        final_norm=norm,
        hidden_size=hidden,
        tie_default=True,
        token_name="wte",
        max_positions=positions,
        ignored=CAUSAL_MASK,
    )


FAMILY = Family(
    "gpt2",
    build,
    CLASSES,
    Task.CAUSAL_LM,
    ("transformer.",),
    ignored_settings=("n_ctx", "reorder_and_upcast_attn"),
)
