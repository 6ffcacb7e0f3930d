"""GTE (Zhang et al. 2024, multilingual): post-norm encoder with rotary positions and a gated feed-forward."""

from __future__ import annotations

from dataclasses import replace

from cygnet.architectures.encoders import CLASSES, encoder_only, masked_head, pooled_head, pooler, token_head
from cygnet.architectures.families.bert import norm_spec, stack_spec
from cygnet.architectures.families.llama import attention_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Activation, FeedForwardSpec, LayerSpec, Mask, Placement, Task
from cygnet.architectures.transforms import part_of
from cygnet.architectures.weights import Row

AT = "encoder.layer.{i}."
ROWS = (
    Row("encoder.embed.token", "embeddings.word_embeddings"),
    Row("encoder.embed.type", "embeddings.token_type_embeddings"),
    Row("encoder.embed.norm", "embeddings.LayerNorm"),
    *(Row(f"encoder.{{i}}.attention.{name}", AT + "attention.qkv_proj", part_of(n, 3)) for n, name in enumerate(("query", "key", "value"))),
    Row("encoder.{i}.attention.output", AT + "attention.o_proj"),
    Row("encoder.{i}.attention_norm", AT + "attn_ln"),
    Row("encoder.{i}.ffn.up", AT + "mlp.up_gate_proj", part_of(0, 2), bias=False),
    Row("encoder.{i}.ffn.gate", AT + "mlp.up_gate_proj", part_of(1, 2), bias=False),
    Row("encoder.{i}.ffn.down", AT + "mlp.down_proj"),
    Row("encoder.{i}.ffn_norm", AT + "mlp_ln"),
)
HEADS = (r"lm_head\..*", r"pooler\..*", r"classifier\..*", r"qa_outputs\..*")


def head_of(config, source, task):
    """The head, and the pooled vector of a bare model."""
    hidden = config["hidden_size"]
    if task is Task.ENCODER:
        return None, pooler(source, hidden)
    if task is Task.SEQUENCE_CLASSIFICATION:
        return pooled_head(config, hidden, "pooler.dense", "classifier"), None
    if task is not Task.MASKED_LM:
        return token_head(config, task), None
    tied = source.tied(config.get("tie_word_embeddings", True), "lm_head.decoder.weight", "embeddings.word_embeddings.weight")
    names = dict(dense="lm_head.dense", norm_name="lm_head.norm", decoder="lm_head.decoder", bias=("lm_head.bias", "lm_head.decoder.bias"))
    return masked_head(config["vocab_size"], hidden, Activation.GELU, norm_spec(config), tied, **names), None


def build(config, source, task):
    attention = attention_spec(config, mask=Mask.BIDIRECTIONAL, theta=160000.0)
    attention = replace(attention, kv_heads=attention.heads)
    ffn = FeedForwardSpec(config["intermediate_size"], config.activation("hidden_act", "gelu"), gated=True)
    stack = stack_spec(config, None, types=0, layer=LayerSpec(attention, ffn, norm_spec(config), Placement.POST))
    head, pooled = head_of(config, source, task)
    longest = config.get("max_position_embeddings", 8192)
    return encoder_only(config, task, family="gte", stack=stack, rows=ROWS, head=head, pooler=pooled, max_positions=longest, ignored=HEADS)


FAMILY = Family("gte", build, CLASSES, Task.ENCODER, ("gte.", "new."))
