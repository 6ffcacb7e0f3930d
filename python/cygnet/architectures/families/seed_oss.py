"""Seed-OSS (ByteDance 2025) and the Code World Model (Meta 2025): LLaMA with a head size, biases or windows of its own."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, layer_types
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, heads, layer_spec, norm_rows, rms
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import ROTARY_SETTINGS, rotary
from cygnet.architectures.spec import Task

HEAD_DIM = 128
# What the Code World Model means where its config says nothing of rotary positions.
CWM_ROPE = dict(rope_type="llama3", rope_theta=1e6, factor=16.0, high_freq_factor=4.0, low_freq_factor=1.0, original_max_position_embeddings=8192)


def build(config, source, task):
    layer = layer_spec(config, attention_spec(config, head_dim=HEAD_DIM))
    biases = attention_rows(config.get("attention_bias", True), output_bias=config.get("attention_out_bias", False))
    rows = (*norm_rows(), *biases, *gated_rows(config.get("mlp_bias", False)))
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], rows, family="seed_oss")


def build_cwm(config, source, task):
    size = config.nullable("sliding_window", 8192) or None
    types = layer_types(config, config["num_hidden_layers"], lambda index: "sliding_attention" if index % 4 else "full_attention")
    windows = [size if kind == "sliding_attention" else None for kind in types]
    size = heads(config, HEAD_DIM)[2]
    stated = "rope_parameters" in config or "rope_scaling" in config
    positions = rotary(config if stated else config.replaced({"rope_parameters": CWM_ROPE}), size, theta=1e6)
    layers = [
        layer_spec(config, attention_spec(config, head_dim=size, positions=positions, window=window), norm=rms(config, 1e-5)) for window in windows
    ]
    rows = (*norm_rows(), *attention_rows(), *gated_rows(config.get("mlp_bias", False)))
    return assemble(config, source, task, layers, rows, family="cwm")


FAMILY = Family("seed_oss", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
CWM = Family("cwm", build_cwm, CLASSES, Task.CAUSAL_LM, PREFIXES, ROTARY_SETTINGS)
