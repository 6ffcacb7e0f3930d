"""RoBERTa (Liu et al. 2019), XLM-RoBERTa and CamemBERT: BERT whose positions count the tokens that are not padding, from padding_idx + 1."""

from __future__ import annotations

from cygnet.architectures.encoders import CLASSES, encoder_only, masked_head, pooled_head, pooler, token_head
from cygnet.architectures.families.bert import EMBEDDING_ROWS, LAYER_ROWS, norm_spec, stack_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Activation, PositionSpec, PositionTable, Task

HEADS = (r"lm_head\..*", r"pooler\..*", r"classifier\..*", r"qa_outputs\..*")


def positions_spec(config, padding):
    """Rows of the position table, and the longest sequence they allow."""
    count = config.get("max_position_embeddings", 514)
    table = PositionSpec(PositionTable.LEARNED, count, offset=padding + 1, padding_id=padding, padding_row=padding)
    return table, count - padding - 1


def lm_head(config, source, act=Activation.GELU):
    """Dense map, GELU and norm, then the embedding and a bias."""
    tied = source.tied(config.get("tie_word_embeddings", True), "lm_head.decoder.weight", "embeddings.word_embeddings.weight")
    return masked_head(
        *(config["vocab_size"], config["hidden_size"], act, norm_spec(config), tied),
        dense="lm_head.dense",
        norm_name="lm_head.layer_norm",
        decoder="lm_head.decoder",
        bias=("lm_head.bias", "lm_head.decoder.bias"),
    )


def head_of(config, source, task):
    """The head, and the pooled vector of a bare model."""
    hidden = config["hidden_size"]
    if task is Task.ENCODER:
        return None, pooler(source, hidden)
    if task is Task.MASKED_LM:
        return lm_head(config, source), None
    if task is Task.SEQUENCE_CLASSIFICATION:
        return pooled_head(config, hidden, "classifier.dense", "classifier.out_proj"), None
    return token_head(config, task), None


def build(config, source, task):
    positions, longest = positions_spec(config, config.get("pad_token_id", 1))
    head, pooled = head_of(config, source, task)
    stack = stack_spec(config, positions)
    rows = (*EMBEDDING_ROWS, *LAYER_ROWS)
    return encoder_only(config, task, family="roberta", stack=stack, rows=rows, head=head, pooler=pooled, max_positions=longest, ignored=HEADS)


FAMILY = Family("roberta", build, CLASSES, Task.ENCODER, ("roberta.",))
