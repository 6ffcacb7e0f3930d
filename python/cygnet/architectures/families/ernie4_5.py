"""ERNIE 4.5 (Baidu 2025) and Helium (Kyutai 2025): LLaMA with rotary positions in neighbouring pairs."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, heads, layer_spec, norm_rows, rms
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import Task

HEAD_DIM = 128


def layers(config, theta, eps):
    """Equal layers."""
    positions = rotary(config, heads(config, HEAD_DIM)[2], theta=theta, interleaved=True)
    return [layer_spec(config, attention_spec(config, head_dim=HEAD_DIM, positions=positions), norm=rms(config, eps))] * config["num_hidden_layers"]


def build(config, source, task):
    bias = config.get("use_bias", False)
    rows = (*norm_rows(), *attention_rows(bias), *gated_rows(bias))
    return assemble(config, source, task, layers(config, 500000.0, 1e-5), rows, family="ernie4_5", tie_default=True)


def build_helium(config, source, task):
    rows = (*norm_rows(), *attention_rows(config.get("attention_bias", False), output_bias=False), *gated_rows(config.get("mlp_bias", False)))
    return assemble(config, source, task, layers(config, 100000.0, 1e-8), rows, family="helium")


FAMILY = Family("ernie4_5", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
HELIUM = Family("helium", build_helium, CLASSES, Task.CAUSAL_LM, PREFIXES)
