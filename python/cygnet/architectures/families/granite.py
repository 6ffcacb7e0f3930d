"""Granite (IBM 2024): LLaMA with multipliers on embeddings, attention, residuals and logits."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, token_embedding
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, layer_spec, norm_rows
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Task


def build(config, source, task):
    attention = attention_spec(config, scale=config.get("attention_multiplier", 1.0))
    layer = layer_spec(config, attention, residual_scale=config.get("residual_multiplier", 1.0))
    rows = (*norm_rows(), *attention_rows(config.get("attention_bias", False)), *gated_rows(config.get("mlp_bias", False)))
    return assemble(
        config,
        source,
        task,
        [layer] * config["num_hidden_layers"],
        rows,
        family="granite",
        embedding=token_embedding(config, scale=config.get("embedding_multiplier", 1.0)),
        head_scale=1 / config.get("logits_scaling", 1.0),
    )


FAMILY = Family("granite", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
