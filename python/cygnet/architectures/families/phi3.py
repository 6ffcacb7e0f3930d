"""Phi-3 and Phi-4-mini (Microsoft 2024): LLaMA with fused projections, and rotary factors for short and long texts."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_spec, heads, layer_spec, norm_rows, rms, windows
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Task
from cygnet.architectures.transforms import part_of, rows
from cygnet.architectures.weights import Row

FIXED_ROWS = (
    *norm_rows(),
    Row("decoder.{i}.attention.output", "layers.{i}.self_attn.o_proj", bias=False),
    Row("decoder.{i}.ffn.gate", "layers.{i}.mlp.gate_up_proj", part_of(0, 2), bias=False),
    Row("decoder.{i}.ffn.up", "layers.{i}.mlp.gate_up_proj", part_of(1, 2), bias=False),
    Row("decoder.{i}.ffn.down", "layers.{i}.mlp.down_proj", bias=False),
)


def build(config, source, task):
    count, kv, size = heads(config)
    query, key = count * size, kv * size
    places = {"query": slice(0, query), "key": slice(query, query + key), "value": slice(query + key, query + 2 * key)}
    fused = tuple(Row(f"decoder.{{i}}.attention.{name}", "layers.{i}.self_attn.qkv_proj", rows(at), bias=False) for name, at in places.items())
    layers = [layer_spec(config, attention_spec(config, window=window), norm=rms(config, 1e-5)) for window in windows(config)]
    return assemble(config, source, task, layers, (*FIXED_ROWS, *fused), family="phi3")


FAMILY = Family("phi3", build, CLASSES, Task.CAUSAL_LM, PREFIXES, ("full_attn_mod", "interpolate_factor", "original_max_position_embeddings"))
