"""EXAONE 4.0 (LG AI Research 2025): norms behind the sublayers, normed queries and keys, and full layers without positions among windowed ones."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, layer_types
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, layer_spec, rms
from cygnet.architectures.families.olmo import EMBEDDING, NORMS
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import ROTARY_SETTINGS
from cygnet.architectures.spec import Placement, QKNorm, Task
from cygnet.errors import UnsupportedModel


def period(config, size):
    """Every so many layers one is full: a number, or as many letters; none slides where there is no window."""
    pattern = config.get("sliding_window_pattern", 4)
    if not isinstance(pattern, (int, str)) or isinstance(pattern, str) and pattern != "L" * (len(pattern) - 1) + "G":
        raise UnsupportedModel(f"config of {config.name}: sliding_window_pattern = {pattern!r} is not supported (supported: a number, or as LLLG is)")
    return (pattern if isinstance(pattern, int) else len(pattern)) if size else 0


def build(config, source, task):
    norm, size, count = rms(config, 1e-5), config.nullable("sliding_window", 4096), config["num_hidden_layers"]
    every = period(config, size)
    types = layer_types(config, count, lambda index: "sliding_attention" if every and (index + 1) % every else "full_attention")
    layers = []
    for kind in types:
        sliding = kind == "sliding_attention"
        fields = {} if sliding or not size else {"positions": None}
        attention = attention_spec(config, window=size if sliding else None, qk_norm=QKNorm.HEAD, qk_norm_spec=norm, **fields)
        layers.append(layer_spec(config, attention, norm=norm, placement=Placement.OUTPUT))
    return assemble(config, source, task, layers, (EMBEDDING, *NORMS, *attention_rows(), *gated_rows()), family="exaone4")


FAMILY = Family("exaone4", build, CLASSES, Task.CAUSAL_LM, PREFIXES, ROTARY_SETTINGS)
