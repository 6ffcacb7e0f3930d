"""ELECTRA (Clark et al. 2020): BERT with optionally narrower embeddings, as discriminator (one logit a token) or generator."""

from __future__ import annotations

from cygnet.architectures.encoders import CLASSES, encoder_only, masked_head, pooled_head, token_head
from cygnet.architectures.families.bert import EMBEDDING_ROWS, LAYER_ROWS, norm_spec, stack_spec
from cygnet.architectures.family import Family
from cygnet.architectures.spec import Activation, HeadSpec, HeadStep, Pool, PositionSpec, PositionTable, Task
from cygnet.architectures.weights import Row

ROWS = (*EMBEDDING_ROWS, Row("encoder.embed.project", "embeddings_project"), *LAYER_ROWS)
HEADS = (r"(discriminator|generator)_.*", r"classifier\..*", r"qa_outputs\..*", r"pooler\..*")


def discriminator(config):
    """Whether each token was replaced: a dense map with the model's activation, then one logit."""
    steps = (HeadStep("dense", config["hidden_size"], config.activation("hidden_act", "gelu")), HeadStep("logits", 1))
    rows = (Row("head.dense", "discriminator_predictions.dense"), Row("head.logits", "discriminator_predictions.dense_prediction"))
    return HeadSpec(Pool.ALL, steps), rows


def generator(config, source, width):
    """Masked language model."""
    tied = source.tied(config.get("tie_word_embeddings", True), "generator_lm_head.weight", "embeddings.word_embeddings.weight")
    return masked_head(
        *(config["vocab_size"], width, Activation.GELU, norm_spec(config), tied),
        dense="generator_predictions.dense",
        norm_name="generator_predictions.LayerNorm",
        decoder="generator_lm_head",
        bias=True,
    )


def build(config, source, task):
    width, count = config.get("embedding_size", 128), config.get("max_position_embeddings", 512)
    stack = stack_spec(config, PositionSpec(PositionTable.LEARNED, count), width=width)
    head = None
    if task is Task.MASKED_LM:
        head = generator(config, source, width)
    elif task is Task.SEQUENCE_CLASSIFICATION:
        head = pooled_head(config, config["hidden_size"], "classifier.dense", "classifier.out_proj", Activation.GELU)
    elif task is Task.REPLACED_TOKEN_DETECTION:
        head = discriminator(config)
    elif task is not Task.ENCODER:
        head = token_head(config, task)
    return encoder_only(config, task, family="electra", stack=stack, rows=ROWS, head=head, max_positions=count, ignored=HEADS)


FAMILY = Family("electra", build, {**CLASSES, "ForPreTraining": Task.REPLACED_TOKEN_DETECTION}, Task.ENCODER, ("electra.",))
