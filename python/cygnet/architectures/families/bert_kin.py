"""Encoders close to BERT.

ERNIE (Sun et al. 2020), MegatronBERT (Shoeybi et al. 2019), BertGeneration (Rothe et al. 2020), RemBERT (Chung et al. 2021),
RoFormer (Su et al. 2021).
"""

from __future__ import annotations

from dataclasses import replace

from cygnet.architectures.encoders import CLASSES, encoder_only, masked_head, pooled_head, pooler, token_head
from cygnet.architectures.families.bert import (
    EMBEDDING_ROWS,
    HEADS,
    LAYER,
    LAYER_ROWS,
    head_of,
    layer_spec,
    masked,
    norm_spec,
    stack_spec,
)
from cygnet.architectures.families.roberta import renamed
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Placement, PositionSpec, PositionTable, Rotary, Task
from cygnet.architectures.transforms import plus_first_row
from cygnet.architectures.weights import Row

ROWS = (*EMBEDDING_ROWS, *LAYER_ROWS)
IGNORED = (*HEADS, r"encoder\.embed_positions\.weight")  # RoFormer's table of angles
MEGATRON_NORMS = {"encoder.{i}.attention_norm": LAYER + "attention.ln", "encoder.{i}.ffn_norm": LAYER + "ln", "encoder.final_norm": "encoder.ln"}


def learned(config):
    """A row for each position."""
    return PositionSpec(PositionTable.LEARNED, config.get("max_position_embeddings", 512))


def finish(config, task, family, stack, rows, head, pooled=None):
    """The whole model."""
    longest = config.get("max_position_embeddings", 512)
    return encoder_only(config, task, family=family, stack=stack, rows=rows, head=head, pooler=pooled, max_positions=longest, ignored=IGNORED)


def build_ernie(config, source, task):
    """The kind of task is the first one where nobody names another, so its row belongs to every position."""
    config.get("task_type_vocab_size")
    rows = ROWS
    if config.get("use_task_id", False):
        kinds = ("embeddings.task_type_embeddings.weight",)
        rows = [replace(row, transform=plus_first_row, also=kinds) if row.ours == "encoder.embed.position" else row for row in ROWS]
    return finish(config, task, "ernie", stack_spec(config, learned(config)), rows, *head_of(config, source, task))


def build_megatron(config, source, task):
    layer = layer_spec(config, placement=Placement.PRE)
    stack = stack_spec(config, learned(config), layer=layer, embedding_norm=False, final_norm=norm_spec(config))
    return finish(config, task, "megatron-bert", stack, renamed(dict(MEGATRON_NORMS)), *head_of(config, source, task))


def build_generation(config, source, task):
    return finish(config, task, "bert-generation", stack_spec(config, learned(config), types=0), ROWS, None)


def build_rembert(config, source, task):
    """Narrow embeddings in front; the output layer has a width and a matrix of its own."""
    hidden, width = config["hidden_size"], config.get("input_embedding_size", 256)
    stack = stack_spec(config, learned(config), width=width)
    stack = replace(stack, embedding=replace(stack.embedding, project=True))
    rows = (*ROWS, Row("encoder.embed.project", "encoder.embedding_hidden_mapping_in"))
    head = pooled = None
    if task is Task.MASKED_LM:
        at, inner = "cls.predictions.", config.get("output_embedding_size", 1664)
        act = config.activation("hidden_act", "gelu")
        names = dict(dense=at + "dense", norm_name=at + "LayerNorm", decoder=at + "decoder", bias=(at + "bias", at + "decoder.bias"))
        head = masked_head(config["vocab_size"], inner, act, norm_spec(config), False, **names)
    elif task is Task.ENCODER:
        pooled = pooler(source, hidden)
    else:
        head, _ = head_of(config, source, task)
    return finish(config, task, "rembert", stack, rows, head, pooled)


def build_roformer(config, source, task):
    """Rotary positions in neighbouring pairs."""
    config.refuse("rotary_value", False)
    hidden, width = config["hidden_size"], config.get("embedding_size", config["hidden_size"])
    positions = Rotary(hidden // config["num_attention_heads"], interleaved=True, max_positions=config.get("max_position_embeddings", 1536))
    stack = stack_spec(config, None, width=width, layer=layer_spec(config, positions))
    rows = (*ROWS, Row("encoder.embed.project", "embeddings_project"))
    head = None
    if task is Task.MASKED_LM:
        head, head_rows = masked(config, source)
        # Its dense map leads back to the width of the embeddings.
        head = (replace(head, steps=(replace(head.steps[0], features=width), *head.steps[1:])), head_rows)
    elif task is Task.SEQUENCE_CLASSIFICATION:
        head = pooled_head(config, hidden, "classifier.dense", "classifier.out_proj", config.activation("hidden_act", "gelu"))
    elif task is not Task.ENCODER:
        head = token_head(config, task)
    return finish(config, task, "roformer", stack, rows, head)


ERNIE = Family("ernie", build_ernie, CLASSES, Task.ENCODER, ("ernie.",), ("task_type_vocab_size",))
MEGATRON_BERT = Family("megatron-bert", build_megatron, CLASSES, Task.ENCODER, ("bert.",))
BERT_GENERATION = Family("bert-generation", build_generation, {"Encoder": Task.ENCODER}, Task.ENCODER, ("bert.",))
REMBERT = Family("rembert", build_rembert, CLASSES, Task.ENCODER, ("rembert.",), ("input_embedding_size", "output_embedding_size"))
ROFORMER = Family("roformer", build_roformer, CLASSES, Task.ENCODER, ("roformer.",), ("embedding_size", "rotary_value"))
