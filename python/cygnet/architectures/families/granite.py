"""Granite (IBM 2024): LLaMA with multipliers on embeddings, attention, residuals and logits; dense, with experts, and with a shared expert."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, token_embedding
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, layer_spec, norm_rows
from cygnet.architectures.family import Family
from cygnet.architectures.spec import ExpertsSpec, FeedForwardSpec, Task
from cygnet.architectures.transforms import part_of
from cygnet.architectures.transforms import rows as stored_rows
from cygnet.architectures.weights import Row


def fused_expert_rows(count, size):
    """All experts lie in one tensor, gate and up side by side."""
    at, rows = "layers.{i}.block_sparse_moe.", [Row("decoder.{i}.ffn.router", "layers.{i}.block_sparse_moe.router.layer")]
    for e in range(count):
        ours, first = f"decoder.{{i}}.ffn.experts.{e}.", 2 * e * size
        rows.append(Row(ours + "gate", at + "input_linear", stored_rows(slice(first, first + size)), bias=False))
        rows.append(Row(ours + "up", at + "input_linear", stored_rows(slice(first + size, first + 2 * size)), bias=False))
        rows.append(Row(ours + "down", at + "output_linear", part_of(e, count), bias=False))
    return rows


def experts(config):
    """The feed-forward of the kinds with experts, and its rows."""
    count, size = config.get("num_local_experts", 8), config["intermediate_size"]
    shared = config.get("shared_intermediate_size", 0)
    spec = ExpertsSpec(count, config.get("num_experts_per_tok", 2), size, renormalize=True, shared_hidden_size=shared)
    at = "layers.{i}.shared_mlp."
    rows = (
        *fused_expert_rows(count, size),
        Row("decoder.{i}.ffn.shared.gate", at + "input_linear", part_of(0, 2), bias=False),
        Row("decoder.{i}.ffn.shared.up", at + "input_linear", part_of(1, 2), bias=False),
        Row("decoder.{i}.ffn.shared.down", at + "output_linear", bias=False),
    )
    return FeedForwardSpec(size, config.activation("hidden_act", "silu"), True, spec), rows


def assembled(config, source, task, family, ffn, ffn_rows):
    """A Granite with that feed-forward; None: the usual one."""
    attention = attention_spec(config, scale=config.get("attention_multiplier", 1.0))
    layer = layer_spec(config, attention, ffn=ffn, residual_scale=config.get("residual_multiplier", 1.0))
    rows = (*norm_rows(), *attention_rows(config.get("attention_bias", False)), *ffn_rows)
    return assemble(
        config,
        source,
        task,
        [layer] * config["num_hidden_layers"],
        rows,
        family=family,
        embedding=token_embedding(config, scale=config.get("embedding_multiplier", 1.0)),
        head_scale=1 / config.get("logits_scaling", 1.0),
    )


def build(config, source, task):
    return assembled(config, source, task, "granite", None, gated_rows(config.get("mlp_bias", False)))


def build_experts(config, source, task):
    return assembled(config, source, task, config.name, *experts(config))


FAMILY = Family("granite", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
GRANITEMOE = Family("granitemoe", build_experts, CLASSES, Task.CAUSAL_LM, PREFIXES)
