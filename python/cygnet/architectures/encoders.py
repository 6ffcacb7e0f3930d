"""What encoder-only families share: class names, the outer shape of the spec, and the usual heads."""

from __future__ import annotations

from cygnet.architectures.family import Built
from cygnet.architectures.spec import Activation, HeadSpec, HeadStep, ModelKind, ModelSpec, Pool, Task
from cygnet.architectures.tokens import labels
from cygnet.architectures.weights import Row

CLASSES = {
    "ForMaskedLM": Task.MASKED_LM,
    "ForPreTraining": Task.MASKED_LM,
    # Reading both ways unless is_decoder says otherwise, which is refused.
    "LMHeadModel": Task.MASKED_LM,
    "ForCausalLM": Task.MASKED_LM,
    "ForSequenceClassification": Task.SEQUENCE_CLASSIFICATION,
    "ForTokenClassification": Task.TOKEN_CLASSIFICATION,
    "ForQuestionAnswering": Task.QUESTION_ANSWERING,
    "Model": Task.ENCODER,
}


def encoder_only(config, task, *, family, stack, rows, head=None, pooler=None, max_positions=None, ignored=(), vocab_size=None):
    """Put an encoder-only model together.

    Parameters
    ----------
    config : Config
    task : Task
    family : str
    stack : StackSpec
    rows : iterable of Row
        Of the stack alone.
    head, pooler : (HeadSpec, tuple of Row) or None
        As `token_head` and its siblings return them.
    max_positions : int or None
    ignored : tuple of str
        Patterns of tensors that may be left over.
    vocab_size : int, optional
        That of the embedding by default.

    Returns
    -------
    Built
    """
    head, head_rows = head or (None, ())
    pooler, pooler_rows = pooler or (None, ())
    named = task in (Task.SEQUENCE_CLASSIFICATION, Task.TOKEN_CLASSIFICATION, Task.IMAGE_CLASSIFICATION)
    spec = ModelSpec(
        family=family,
        kind=ModelKind.ENCODER,
        task=task,
        hidden_size=stack.hidden_size,
        vocab_size=stack.embedding.vocab_size if vocab_size is None else vocab_size,
        max_positions=max_positions,
        encoder=stack,
        head=head,
        pooler=pooler,
        labels=labels(config) if named else ("replaced",) if task is Task.REPLACED_TOKEN_DETECTION else (),
    )
    return Built(spec, (*rows, *head_rows, *pooler_rows), ignored)


def token_head(config, task, classifier="classifier", answers="qa_outputs", bias=True):
    """One affine map of every row: labels of tokens, or start and end scores of answers."""
    if task is Task.QUESTION_ANSWERING:
        config.refuse("num_labels", 2)
        return HeadSpec(Pool.ALL, (HeadStep("logits", 2),)), (Row("head.logits", answers),)
    return HeadSpec(Pool.ALL, (HeadStep("logits", len(labels(config))),)), (Row("head.logits", classifier, bias=bias),)


def pooled_head(config, width, dense, classifier, activation=Activation.TANH, pool=Pool.FIRST):
    """A dense map with an activation of the first row, then the labels."""
    steps = (HeadStep("dense", width, activation), HeadStep("logits", len(labels(config))))
    return HeadSpec(pool, steps), (Row("head.dense", dense), Row("head.logits", classifier))


def masked_head(vocab_size, width, activation, norm, tied, *, dense, norm_name, decoder, bias):
    """Dense map, activation and norm of every row, then the vocabulary.

    Of two names of the bias the first is that of the head, the second that of its last map: the former counts where the map is the embedding.
    """
    bias = bias[::-1] if isinstance(bias, tuple) and not tied else bias
    steps = (HeadStep("dense", width, activation), HeadStep("norm", norm=norm), HeadStep("logits", vocab_size, tied=tied))
    return HeadSpec(Pool.ALL, steps), (Row("head.dense", dense), Row("head.norm", norm_name), Row("head.logits", decoder, bias=bias))


def pooler(source, width, dense="pooler.dense", activation=Activation.TANH):
    """The pooled vector of a bare encoder, where the file has the weights for it."""
    if f"{dense}.weight" not in source:
        return None
    return HeadSpec(Pool.FIRST, (HeadStep("pooler", width, activation),)), (Row("head.pooler", dense),)
