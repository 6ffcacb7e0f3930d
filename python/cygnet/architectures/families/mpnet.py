"""MPNet (Song et al. 2020): RoBERTa's positions plus a relative bias shared by all layers, and no token types."""

from __future__ import annotations

from cygnet.architectures.encoders import CLASSES, encoder_only
from cygnet.architectures.families.bert import EMBEDDING_ROWS, layer_spec, stack_spec
from cygnet.architectures.families.roberta import HEADS, head_of, positions_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Relative, Task
from cygnet.architectures.weights import Row

AT = "encoder.layer.{i}."
ROWS = (
    *EMBEDDING_ROWS,
    Row("encoder.relative", "encoder.relative_attention_bias"),
    Row("encoder.{i}.attention.query", AT + "attention.attn.q"),
    Row("encoder.{i}.attention.key", AT + "attention.attn.k"),
    Row("encoder.{i}.attention.value", AT + "attention.attn.v"),
    Row("encoder.{i}.attention.output", AT + "attention.attn.o"),
    Row("encoder.{i}.attention_norm", AT + "attention.LayerNorm"),
    Row("encoder.{i}.ffn.up", AT + "intermediate.dense"),
    Row("encoder.{i}.ffn.down", AT + "output.dense"),
    Row("encoder.{i}.ffn_norm", AT + "output.LayerNorm"),
)
PADDING, BUCKETS = 1, 32


def build(config, source, task):
    config.refuse("type_vocab_size", 0)
    config.refuse("relative_attention_num_buckets", BUCKETS)
    positions, longest = positions_spec(config, PADDING)
    relative = Relative(BUCKETS, 128, bidirectional=True)
    head, pooled = head_of(config, source, task)
    stack = stack_spec(config, positions, types=0, layer=layer_spec(config, relative))
    return encoder_only(config, task, family="mpnet", stack=stack, rows=ROWS, head=head, pooler=pooled, max_positions=longest, ignored=HEADS)


FAMILY = Family("mpnet", build, CLASSES, Task.ENCODER, ("mpnet.",))
