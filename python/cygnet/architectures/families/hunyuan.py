"""HunYuan dense (Tencent 2025): LLaMA with a norm of each query and key head behind the rotary positions."""

from __future__ import annotations

from dataclasses import replace

from cygnet.architectures.decoders import CLASSES
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, layer_spec, norm_rows, rms
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import QKNorm, Task
from cygnet.architectures.weights import Row

NORM_ROWS = tuple(Row(f"decoder.{{i}}.attention.{which}_norm", f"layers.{{i}}.self_attn.{which}_layernorm") for which in ("query", "key"))


def positions(config, size):
    """Its "dynamic" scaling with an alpha stretches the base once and for all."""
    settings = config.get("rope_parameters") or config.get("rope_scaling") or {}
    alpha = settings.get("alpha")
    if not alpha or (settings.get("rope_type") or settings.get("type")) != "dynamic":
        return rotary(config, size)
    theta = settings.get("rope_theta") or config.get("rope_theta", 10000.0)
    plain = {"rope_parameters": {"rope_theta": theta * alpha ** (size / (size - 2)), "rope_type": "default"}}
    return rotary(config.replaced(plain), size)


def build(config, source, task):
    size = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    norm = dict(qk_norm=QKNorm.HEAD, qk_norm_spec=rms(config, 1e-5), qk_norm_last=True)
    attention = attention_spec(config, positions=positions(config, size), **norm)
    layer = layer_spec(config, replace(attention, scale=size**-0.5), norm=rms(config, 1e-5))
    rows = (*norm_rows(), *attention_rows(config.get("attention_bias", False)), *NORM_ROWS, *gated_rows(config.get("mlp_bias", False)))
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], rows, family="hunyuan_v1_dense")


IGNORED = ("sep_id", "eod_token_id", "rope_scaling", "rope_theta")
FAMILY = Family("hunyuan_v1_dense", build, CLASSES, Task.CAUSAL_LM, PREFIXES, IGNORED)
