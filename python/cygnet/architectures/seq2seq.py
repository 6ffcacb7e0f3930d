"""What encoder-decoder families share: which embedding each side reads, the tied head, and the outer shape of the spec."""

from __future__ import annotations

from cygnet.architectures.family import Built
from cygnet.architectures.spec import Activation, HeadSpec, HeadStep, ModelKind, ModelSpec, Pool, PositionTable, Task
from cygnet.architectures.tokens import labels
from cygnet.architectures.transforms import made
from cygnet.architectures.weights import Row
from cygnet.reference.positions import sinusoidal_positions

LAYOUTS = {
    PositionTable.SINUSOIDAL: "interleaved",
    PositionTable.SINUSOIDAL_HALVES: "halves",
    PositionTable.SINUSOIDAL_FAIRSEQ: "fairseq",
}
CLASSES = {"ForConditionalGeneration": Task.SEQ2SEQ, "Model": Task.HIDDEN_STATES}
# Families with heads on what the decoder reads.
HEADS = {"ForSequenceClassification": Task.SEQUENCE_CLASSIFICATION, "ForQuestionAnswering": Task.QUESTION_ANSWERING}
OTHER_HEADS = (r"(classification_head|qa_outputs)\..*", r"final_logits_bias")


def token_names(source, encoder="encoder.embed_tokens", decoder="decoder.embed_tokens", shared="shared"):
    """Source names of the encoder's and the decoder's token embedding: files hold it once, or again for each side, or only for one.

    A side's own copy counts where it differs from the shared one; the encoder reads the decoder's where nothing else is there (MADLAD).
    """
    common = next((name for name in (shared, encoder, decoder) if f"{name}.weight" in source), shared)
    sides = []
    for own in (encoder, decoder):
        differs = f"{own}.weight" in source and own != common and not source.same(f"{own}.weight", f"{common}.weight")
        sides.append(own if differs else common)
    return tuple(sides)


def embedding_rows(encoder, decoder):
    """Rows of the token embeddings."""
    return (Row("encoder.embed.token", encoder), Row("decoder.embed.token", decoder))


def position_rows(source, positions, stacks=("encoder", "decoder")):
    """Rows of the position tables: stored ones, or sinusoids made now where the file has none."""
    rows = []
    for s in stacks:
        name = f"{s}.embed_positions"
        if positions.kind is PositionTable.LEARNED or f"{name}.weight" in source:
            rows.append(Row(f"{s}.embed.position", name))
        else:
            rows.append(Row(f"{s}.embed.position", (), made(sinusoids(positions))))
    return tuple(rows)


def sinusoids(positions):
    """make(shape) -> the table that `positions` describes; its padding row is zero where the kind has one."""
    padded = positions.kind is PositionTable.SINUSOIDAL_FAIRSEQ and positions.padding_id is not None
    zero = positions.padding_row if padded else None
    return lambda shape: sinusoidal_positions(*shape, LAYOUTS[positions.kind], zero)


def encoder_decoder(
    config,
    source,
    task=Task.SEQ2SEQ,
    *,
    family,
    encoder,
    decoder,
    rows,
    tie_default=True,
    head_name="lm_head",
    token_name="shared",
    max_positions=None,
    label_count=2,
    starts_with_last=False,
    **head,
):
    """Put an encoder-decoder together.

    Parameters
    ----------
    config, source, task
        As `Family.build` gets them.
    family : str
    encoder, decoder : StackSpec
    rows : iterable of Row
        Of both stacks; the head's is added here.
    tie_default : bool
        tie_word_embeddings where the config does not say.
    head_name, token_name : str
        Source names of the output layer and of the decoder's token embedding.
    max_positions : int or None
    label_count : int
        Labels where the config names none.
    starts_with_last : bool
        As ModelSpec has it.
    head
        `bias` as Row takes it or the whole `row` of the output layer, `hidden_scale` as HeadSpec does, `ignored` patterns of tensors that
        may be left over.

    Returns
    -------
    Built
    """
    tied = source.tied(config.get("tie_word_embeddings", tie_default), f"{head_name}.weight", f"{token_name}.weight")
    ignored = (*head.pop("ignored", ()), *OTHER_HEADS, r"(encoder|decoder)\.embed_tokens\.weight", r"lm_head\.weight")
    bias = head.pop("bias", False)
    row = head.pop("row", None) or Row("head.logits", head_name, bias=bias)
    if task is Task.SEQ2SEQ:
        head, head_rows = HeadSpec(Pool.ALL, (HeadStep("logits", decoder.embedding.vocab_size, tied=tied),), **head), (row,)
    else:
        head, head_rows = text_head(config, task, decoder.hidden_size, label_count)
    spec = ModelSpec(
        family=family,
        kind=ModelKind.ENCODER_DECODER,
        task=task,
        hidden_size=decoder.hidden_size,
        vocab_size=decoder.embedding.vocab_size,
        max_positions=max_positions,
        encoder=encoder,
        decoder=decoder,
        head=head,
        starts_with_last=starts_with_last,
        labels=labels(config, label_count) if task is Task.SEQUENCE_CLASSIFICATION else (),
    )
    return Built(spec, (*rows, *head_rows), ignored)


def text_head(config, task, width, label_count):
    """Heads on the decoder's states: the last end token's row to labels, every row to start and end scores, or nothing."""
    if task is Task.HIDDEN_STATES:
        return HeadSpec(Pool.ALL, ()), ()
    if task is Task.QUESTION_ANSWERING:
        return HeadSpec(Pool.ALL, (HeadStep("logits", 2),)), (Row("head.logits", "qa_outputs"),)
    steps = (HeadStep("dense", width, Activation.TANH), HeadStep("logits", len(labels(config, label_count))))
    return HeadSpec(Pool.LAST, steps), (Row("head.dense", "classification_head.dense"), Row("head.logits", "classification_head.out_proj"))
