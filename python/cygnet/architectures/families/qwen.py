"""Qwen 2 and 3, dense and with experts (Qwen team 2024, 2025): LLaMA with biased queries, keys, values (2) or normed queries, keys (3)."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, layer_types
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, layer_spec, norm_rows, rms
from cygnet.architectures.family import Family
from cygnet.architectures.spec import ExpertsSpec, FeedForwardSpec, QKNorm, Task
from cygnet.architectures.weights import Row

NORM_ROWS = tuple(Row(f"decoder.{{i}}.attention.{which}_norm", f"layers.{{i}}.self_attn.{which[0]}_norm") for which in ("query", "key"))
MOE_ROWS = (
    *gated_rows(),
    *gated_rows(False, "decoder.{i}.ffn.experts.{e}", "layers.{i}.mlp.experts.{e}"),
    *gated_rows(False, "decoder.{i}.ffn.shared", "layers.{i}.mlp.shared_expert"),
    Row("decoder.{i}.ffn.router", "layers.{i}.mlp.gate"),
    Row("decoder.{i}.ffn.shared_gate", "layers.{i}.mlp.shared_expert_gate", bias=False),
)


def windows(config, sliding):
    """The window of each layer; sliding(i, max_window_layers) tells which slide where the config does not list them."""
    count, first = config["num_hidden_layers"], config.get("max_window_layers", 28)
    size = config.get("sliding_window", 4096)
    size = size if config.get("use_sliding_window", False) else None
    types = layer_types(config, count, lambda index: "sliding_attention" if sliding(index, first) else "full_attention")
    return [size if kind == "sliding_attention" else None for kind in types]


def feed_forwards(config, shared, renormalize):
    """Dense or with experts, layer by layer."""
    config.get("intermediate_size")
    dense_layers, step = set(config.get("mlp_only_layers") or ()), config.get("decoder_sparse_step", 1)
    act, inner = config.activation("hidden_act", "silu"), config["moe_intermediate_size"]
    experts = ExpertsSpec(
        config.first("num_experts", "num_local_experts", default=60 if shared else 128),
        config["num_experts_per_tok"],
        inner,
        renormalize=config.get("norm_topk_prob", renormalize),
        shared_hidden_size=config["shared_expert_intermediate_size"] if shared else 0,
        shared_gate=shared,
    )
    sparse = FeedForwardSpec(inner, act, True, experts)
    return [
        FeedForwardSpec(config["intermediate_size"], act, True) if index in dense_layers or (index + 1) % step else sparse
        for index in range(config["num_hidden_layers"])
    ]


def build_2(config, source, task):
    layers = [layer_spec(config, attention_spec(config, window=window)) for window in windows(config, lambda index, first: index >= first)]
    rows = (*norm_rows(), *attention_rows(True, output_bias=False), *gated_rows())
    return assemble(config, source, task, layers, rows, family="qwen2")


def build_2_moe(config, source, task):
    slides = windows(config, lambda index, first: index % 2 == 0 and index < first)
    layers = [
        layer_spec(config, attention_spec(config, window=window), ffn=ffn)
        for window, ffn in zip(slides, feed_forwards(config, True, False), strict=True)
    ]
    rows = (*norm_rows(), *attention_rows(config.get("qkv_bias", True), output_bias=False), *MOE_ROWS)
    return assemble(config, source, task, layers, rows, family="qwen2_moe")


def _normed(config, window, size):
    return attention_spec(config, window=window, head_dim=size, qk_norm=QKNorm.HEAD, qk_norm_spec=rms(config))


def build_3(config, source, task):
    layers = [layer_spec(config, _normed(config, window, 128)) for window in windows(config, lambda index, first: index >= first)]
    rows = (*norm_rows(), *attention_rows(config.get("attention_bias", False)), *NORM_ROWS, *gated_rows())
    return assemble(config, source, task, layers, rows, family="qwen3")


def build_3_moe(config, source, task):
    layers = [
        layer_spec(config, _normed(config, window, None), ffn=ffn)
        for window, ffn in zip(windows(config, lambda index, first: True), feed_forwards(config, False, False), strict=True)
    ]
    rows = (*norm_rows(), *attention_rows(config.get("attention_bias", False)), *NORM_ROWS, *MOE_ROWS)
    return assemble(config, source, task, layers, rows, family="qwen3_moe")


FAMILY = Family("qwen2", build_2, CLASSES, Task.CAUSAL_LM, PREFIXES)
QWEN2_MOE = Family("qwen2_moe", build_2_moe, CLASSES, Task.CAUSAL_LM, PREFIXES)
QWEN3 = Family("qwen3", build_3, CLASSES, Task.CAUSAL_LM, PREFIXES)
QWEN3_MOE = Family("qwen3_moe", build_3_moe, CLASSES, Task.CAUSAL_LM, PREFIXES, gguf=lambda config, weights: {"norm_topk_prob": True})
