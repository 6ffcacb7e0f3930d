"""Arcee (Arcee AI 2025) and Nemotron (NVIDIA 2024): LLaMA with a plain feed-forward of squared ReLU; Nemotron's LayerNorms count from one."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, layer_spec, norm_rows, rms
from cygnet.architectures.family import Family
from cygnet.architectures.spec import FeedForwardSpec, NormKind, NormSpec, Task
from cygnet.architectures.transforms import add_one, plain, weight_only
from cygnet.architectures.weights import Row


def feed_forward(config):
    """Not gated."""
    return FeedForwardSpec(config["intermediate_size"], config.activation("hidden_act", "relu2"))


def plain_rows(config):
    """Attention, and the two maps of the feed-forward."""
    bias = config.get("mlp_bias", False)
    maps = (Row(f"decoder.{{i}}.ffn.{name}", f"layers.{{i}}.mlp.{name}_proj", bias=bias) for name in ("up", "down"))
    return (*attention_rows(config.get("attention_bias", False)), *maps)


def build(config, source, task):
    layer = layer_spec(config, attention_spec(config), ffn=feed_forward(config), norm=rms(config, 1e-5))
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], (*norm_rows(), *plain_rows(config)), family="arcee")


def build_nemotron(config, source, task):
    norm = NormSpec(NormKind.LAYER, config.get("norm_eps", 1e-5))
    layer = layer_spec(config, attention_spec(config, partial=0.5), ffn=feed_forward(config), norm=norm)
    norms = (Row(row.ours, row.source, weight_only(add_one) if "norm" in row.ours else plain, bias="norm" in row.ours) for row in norm_rows())
    rows = (*norms, *plain_rows(config))
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], rows, family="nemotron")


FAMILY = Family("arcee", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
NEMOTRON = Family("nemotron", build_nemotron, CLASSES, Task.CAUSAL_LM, PREFIXES)
