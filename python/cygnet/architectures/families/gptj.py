"""GPT-J (Wang and Komatsuzaki 2021): parallel layers behind one LayerNorm, interleaved rotary positions, a biased head.

CodeGen (Nijkamp et al. 2022) is the same with its projections fused.
"""

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
    Rotary,
    Task,
)
from cygnet.architectures.transforms import heads_of
from cygnet.architectures.weights import Row

MACHINES = 4
ROWS = (
    Row("decoder.embed.token", "wte"),
    Row("decoder.{i}.attention_norm", "h.{i}.ln_1"),
    Row("decoder.{i}.attention.query", "h.{i}.attn.q_proj", bias=False),
    Row("decoder.{i}.attention.key", "h.{i}.attn.k_proj", bias=False),
    Row("decoder.{i}.attention.value", "h.{i}.attn.v_proj", bias=False),
    Row("decoder.{i}.attention.output", "h.{i}.attn.out_proj", bias=False),
    Row("decoder.{i}.ffn.up", "h.{i}.mlp.fc_in"),
    Row("decoder.{i}.ffn.down", "h.{i}.mlp.fc_out"),
    Row("decoder.final_norm", "ln_f"),
)


def codegen_rows(config):
    """Queries, values and keys (in this order) lie in one tensor, in a piece for each of four machines."""
    piece = config["n_embd"] // MACHINES
    parts = (
        Row(f"decoder.{{i}}.attention.{name}", "h.{i}.attn.qkv_proj", heads_of(place * piece, piece, 3 * piece), bias=False)
        for place, name in enumerate(("query", "value", "key"))
    )
    return (*(row for row in ROWS if row.ours.rpartition(".")[2] not in ("query", "key", "value")), *parts)


def assembled(config, source, task, family, rows):
    """Either of them."""
    config.refuse("rotary", True)
    hidden, heads, count = config["n_embd"], config["n_head"], config.get("n_positions", 2048)
    size = hidden // heads
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_epsilon", 1e-5))
    positions = Rotary(config.nullable("rotary_dim", 64) or size, interleaved=True, max_positions=count)
    attention = AttentionSpec(heads, heads, size, size**-0.5, Mask.CAUSAL, positions=positions)
    ffn = FeedForwardSpec(config.get("n_inner", 4 * hidden), config.activation("activation_function", "gelu_new"))
    return decoder_only(
        config,
        source,
        task,
        family=family,
        embedding=EmbeddingSpec(config["vocab_size"], hidden),
        layers=[LayerSpec(attention, ffn, norm, Placement.PARALLEL)] * config["n_layer"],
        rows=rows,
        final_norm=norm,
        hidden_size=hidden,
        tie_default=False,
        token_name="wte",
        head_bias=True,
        max_positions=count,
        ignored=(r"h\.\d+\.attn\.(bias|causal_mask)",),
    )


def build(config, source, task):
    return assembled(config, source, task, "gptj", ROWS)


def build_codegen(config, source, task):
    return assembled(config, source, task, "codegen", codegen_rows(config))


FAMILY = Family("gptj", build, CLASSES, Task.CAUSAL_LM, ("transformer.",), ("n_ctx", "scale_attn_weights", "rotary"))
CODEGEN = Family("codegen", build_codegen, CLASSES, Task.CAUSAL_LM, ("transformer.",), ("n_ctx", "scale_attn_weights", "rotary"))
