"""EuroBERT (Boizard et al. 2025): LLaMA's layers read both ways."""

from __future__ import annotations

from cygnet.architectures.encoders import CLASSES, encoder_only, token_head
from cygnet.architectures.families.llama import attention_rows, attention_spec, gated_rows, layer_spec, norm_rows, rms
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Activation, EmbeddingSpec, HeadSpec, HeadStep, Mask, Pool, StackSpec, Task
from cygnet.architectures.tokens import labels
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel

# Which rows a classifier sees; "late" means that the mean is taken of the labels' scores.
POOLS = {"bos": Pool.FIRST, "mean": Pool.MEAN, "late": Pool.MEAN}
HEADS = (r"(lm_head|dense|classifier|qa_outputs)\..*",)


def sequence_head(config):
    """A dense map with a GELU, then the labels."""
    pooling = config.get("classifier_pooling", "late")
    if pooling not in POOLS:
        raise UnsupportedModel(f"config of {config.name}: classifier_pooling = {pooling!r} is not known (known: {', '.join(POOLS)})")
    steps = (HeadStep("dense", config["hidden_size"], Activation.GELU), HeadStep("logits", len(labels(config))))
    return HeadSpec(POOLS[pooling], steps, pool_outputs=pooling == "late"), (Row("head.dense", "dense"), Row("head.logits", "classifier"))


def head_of(config, source, task):
    """None for the bare model."""
    if task is Task.MASKED_LM:
        tied = source.tied(config.get("tie_word_embeddings", False), "lm_head.weight", "embed_tokens.weight")
        step = HeadStep("logits", config["vocab_size"], tied=tied)
        return HeadSpec(Pool.ALL, (step,)), (Row("head.logits", "lm_head", bias=config.get("mlp_bias", False)),)
    if task is Task.SEQUENCE_CLASSIFICATION:
        return sequence_head(config)
    return None if task is Task.ENCODER else token_head(config, task)


def build(config, source, task):
    norm, hidden = rms(config, 1e-5), config["hidden_size"]
    layer = layer_spec(config, attention_spec(config, mask=Mask.BIDIRECTIONAL), norm=norm)
    stack = StackSpec(hidden, EmbeddingSpec(config["vocab_size"], hidden), (layer,) * config["num_hidden_layers"], norm)
    rows = (*norm_rows(), *attention_rows(config.get("attention_bias", False)), *gated_rows(config.get("mlp_bias", False)))
    table = [Row(row.ours.replace("decoder.", "encoder."), row.source, bias=row.bias) for row in rows]
    head, longest = head_of(config, source, task), config.get("max_position_embeddings", 8192)
    return encoder_only(config, task, family="eurobert", stack=stack, rows=table, head=head, max_positions=longest, ignored=HEADS)


FAMILY = Family("eurobert", build, CLASSES, Task.ENCODER, ("model.",), ("classifier_pooling", "clf_pooling"))
