"""RoBERTa (Liu et al. 2019), XLM-RoBERTa, CamemBERT, data2vec: BERT whose positions count the tokens that are not padding, from padding_idx + 1.

XLM-RoBERTa-XL (Goyal et al. 2021) and RoBERTa-PreLayerNorm (from fairseq) have their norms before the sublayers and one at the end.
"""

from __future__ import annotations

from cygnet.architectures.encoders import CLASSES, encoder_only, masked_head, pooled_head, pooler, token_head
from cygnet.architectures.families.bert import EMBEDDING_ROWS, LAYER, LAYER_ROWS, layer_spec, norm_spec, stack_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Activation, Placement, PositionSpec, PositionTable, Task
from cygnet.architectures.weights import Row

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


def assembled(config, source, task, family, rows, **stack):
    """Any of them; `stack` are fields of bert.stack_spec."""
    positions, longest = positions_spec(config, config.get("pad_token_id", 1))
    head, pooled = head_of(config, source, task)
    whole = dict(stack=stack_spec(config, positions, **stack), rows=rows, head=head, pooler=pooled, max_positions=longest, ignored=HEADS)
    return encoder_only(config, task, family=family, **whole)


def build(config, source, task):
    return assembled(config, source, task, "roberta", (*EMBEDDING_ROWS, *LAYER_ROWS))


def renamed(names):
    """BERT's rows with some at other places."""
    return (*EMBEDDING_ROWS, *(Row(row.ours, names.pop(row.ours, row.source)) for row in LAYER_ROWS), *(Row(*pair) for pair in names.items()))


def pre_normed(family, names, **stack):
    """Family.build of those with norms before the sublayers; `names` are where the norms stand."""

    def build(config, source, task):
        layer = layer_spec(config, placement=Placement.PRE)
        return assembled(config, source, task, family, renamed(dict(names)), layer=layer, final_norm=norm_spec(config), **stack)

    return build


AT = LAYER + "attention."
XL = {
    "encoder.{i}.attention_norm": AT + "self_attn_layer_norm",
    "encoder.{i}.ffn_norm": LAYER + "LayerNorm",
    "encoder.final_norm": "encoder.LayerNorm",
}
PRE = {"encoder.{i}.attention_norm": AT + "LayerNorm", "encoder.{i}.ffn_norm": LAYER + "intermediate.LayerNorm", "encoder.final_norm": "LayerNorm"}
build_xl = pre_normed("xlm-roberta-xl", XL, types=1, embedding_norm=False)
FAMILY = Family("roberta", build, CLASSES, Task.ENCODER, ("roberta.", "data2vec_text."))
XLM_ROBERTA_XL = Family("xlm-roberta-xl", build_xl, CLASSES, Task.ENCODER, ("roberta.",))
PRE_LAYER_NORM = Family("roberta-prelayernorm", pre_normed("roberta-prelayernorm", PRE), CLASSES, Task.ENCODER, ("roberta_prelayernorm.",))
