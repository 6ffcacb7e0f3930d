"""StarCoder and SantaCoder (Li et al. 2023): GPT-2 with plain linear maps and one key/value head."""

from __future__ import annotations

from dataclasses import replace

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families import gpt2
from cygnet.architectures.family import Built, Family
from cygnet.architectures.spec import Task
from cygnet.architectures.transforms import heads_of, plain, rows
from cygnet.architectures.weights import Row

FUSED = "h.{i}.attn.c_attn"


def build(config, source, task):
    built = gpt2.build(config, source, task)
    hidden, heads = config["n_embd"], config["n_head"]
    size, single = hidden // heads, config.get("multi_query", True)
    if single:
        parts = [rows(slice(0, hidden)), rows(slice(hidden, hidden + size)), rows(slice(hidden + size, hidden + 2 * size))]
    else:
        parts = [heads_of(part * size, size, 3 * size) for part in range(3)]
    stack = built.spec.decoder
    layers = tuple(replace(layer, attention=replace(layer.attention, kv_heads=1 if single else heads)) for layer in stack.layers)
    fused = {f"decoder.{{i}}.attention.{name}": part for name, part in zip(("query", "key", "value"), parts, strict=True)}
    table = tuple(Row(row.ours, row.source, fused.get(row.ours, plain), row.bias) for row in built.rows)
    return Built(replace(built.spec, family="gpt_bigcode", decoder=replace(stack, layers=layers)), table, built.ignored)


IGNORED = (
    "attention_softmax_in_fp32",
    "scale_attention_softmax_in_fp32",
    "inference_runner",
    "validate_runner_input",
    "pad_key_length",
    "pre_allocate_kv_cache",
    "max_sequence_length",
    "max_batch_size",
    "num_key_value_heads",
    "n_ctx",
)
FAMILY = Family("gpt_bigcode", build, CLASSES, Task.CAUSAL_LM, ("transformer.",), IGNORED)
