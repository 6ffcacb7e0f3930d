"""SmolLM3 (Hugging Face 2025): LLaMA in which every fourth layer has no rotary positions."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, layer_types
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, layer_spec, norm_rows
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import ROTARY_SETTINGS
from cygnet.architectures.spec import Task


def build(config, source, task):
    count, interval = config["num_hidden_layers"], config.get("no_rope_layer_interval", 4)
    turned = config.get("no_rope_layers") or [int((index + 1) % interval != 0) for index in range(count)]
    size = config.get("sliding_window")
    size = size if config.get("use_sliding_window", False) else None
    types = layer_types(config, count, lambda index: "full_attention" if turned[index] or not size else "sliding_attention")
    layers = []
    for index, kind in enumerate(types):
        fields = {} if turned[index] else {"positions": None}
        window = size if kind == "sliding_attention" else None
        layers.append(layer_spec(config, attention_spec(config, theta=2e6, window=window, **fields)))
    rows = (*norm_rows(), *attention_rows(config.get("attention_bias", False)), *gated_rows(config.get("mlp_bias", False)))
    return assemble(config, source, task, layers, rows, family="smollm3", tie_default=True)


FAMILY = Family("smollm3", build, CLASSES, Task.CAUSAL_LM, PREFIXES, ("max_window_layers", *ROTARY_SETTINGS))
