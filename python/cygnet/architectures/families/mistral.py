"""Mistral (Jiang et al. 2023) and Mixtral (2024): LLaMA with a sliding window, and with experts of which the best are renormalised."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, layer_spec, norm_rows, rms, windows
from cygnet.architectures.family import Family
from cygnet.architectures.spec import ExpertsSpec, FeedForwardSpec, Task
from cygnet.architectures.weights import Row

EXPERT = "layers.{i}.block_sparse_moe.experts.{e}."
EXPERT_ROWS = (
    Row("decoder.{i}.ffn.router", "layers.{i}.block_sparse_moe.gate"),
    Row("decoder.{i}.ffn.experts.{e}.gate", EXPERT + "w1", bias=False),
    Row("decoder.{i}.ffn.experts.{e}.down", EXPERT + "w2", bias=False),
    Row("decoder.{i}.ffn.experts.{e}.up", EXPERT + "w3", bias=False),
)


def build(config, source, task):
    layers = [layer_spec(config, attention_spec(config, window=window)) for window in windows(config, 4096)]
    return assemble(config, source, task, layers, (*norm_rows(), *attention_rows(), *gated_rows()), family="mistral")


def build_mixtral(config, source, task):
    count, chosen = config.first("num_local_experts", "num_experts", default=8), config.get("num_experts_per_tok", 2)
    size = config["intermediate_size"]
    ffn = FeedForwardSpec(size, config.activation("hidden_act", "silu"), True, ExpertsSpec(count, chosen, size, renormalize=True))
    layers = [layer_spec(config, attention_spec(config, window=window, theta=1e6), ffn=ffn, norm=rms(config, 1e-5)) for window in windows(config)]
    return assemble(config, source, task, layers, (*norm_rows(), *attention_rows(), *EXPERT_ROWS), family="mixtral")


FAMILY = Family("mistral", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
MIXTRAL = Family("mixtral", build_mixtral, CLASSES, Task.CAUSAL_LM, PREFIXES)
