"""What decoder-only families share: the outer shape of the spec, its heads, and which layers see a window."""

from __future__ import annotations

from cygnet.architectures.family import Built
from cygnet.architectures.spec import EmbeddingSpec, HeadSpec, HeadStep, ModelKind, ModelSpec, Pool, Rotary, StackSpec, Task
from cygnet.architectures.tokens import labels
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel

CLASSES = {
    "ForCausalLM": Task.CAUSAL_LM,
    "LMHeadModel": Task.CAUSAL_LM,
    "ForSequenceClassification": Task.SEQUENCE_CLASSIFICATION,
    "ForTokenClassification": Task.TOKEN_CLASSIFICATION,
    "ForQuestionAnswering": Task.QUESTION_ANSWERING,
    "Model": Task.ENCODER,
}
# Heads that a file may hold beside the one wanted.
OTHER_HEADS = (r"(lm_head|embed_out|score|classifier|qa_outputs|v_head)\..*",)


def decoder_only(
    config,
    source,
    task,
    *,
    family,
    embedding,
    layers,
    rows,
    final_norm,
    hidden_size,
    tie_default,
    token_name="embed_tokens",
    head_name="lm_head",
    head_bias=False,
    head_scale=1.0,
    head_softcap=None,
    max_positions=None,
    ignored=(),
    **stack,
):
    """Put a decoder-only model together.

    Parameters
    ----------
    config, source, task
        As `Family.build` gets them.
    family : str
    embedding : EmbeddingSpec
    layers : iterable of LayerSpec
    rows : iterable of Row
        Of embedding, layers and final norm; the head's are added here.
    final_norm : NormSpec or None
    hidden_size : int
    tie_default : bool
        tie_word_embeddings where the config does not say.
    token_name, head_name : str
        Source names of the token embedding and the output layer.
    head_bias : bool
    head_scale : float
    head_softcap : float or None
    max_positions : int or None
    ignored : tuple of str
        Patterns of tensors that may be left over.
    stack
        Further fields of StackSpec.

    Returns
    -------
    Built
    """
    decoder = StackSpec(hidden_size=hidden_size, embedding=embedding, layers=tuple(layers), final_norm=final_norm, **stack)
    tied = source.tied(config.get("tie_word_embeddings", tie_default), f"{head_name}.weight", f"{token_name}.weight")
    names, head, head_rows = (), None, ()
    if task is Task.CAUSAL_LM:
        head = HeadSpec(Pool.ALL, (HeadStep("logits", embedding.vocab_size, tied=tied),), scale=head_scale, softcap=head_softcap)
        head_rows = (Row("head.logits", head_name, bias=head_bias),)
    elif task is not Task.ENCODER:
        pool = Pool.LAST if task is Task.SEQUENCE_CLASSIFICATION else Pool.ALL
        names = ("start", "end") if task is Task.QUESTION_ANSWERING else labels(config)
        head = HeadSpec(pool, (HeadStep("logits", len(names)),))
        head_rows = (Row("head.logits", ("score", "classifier", "qa_outputs"), bias=None),)
    spec = ModelSpec(
        family=family,
        kind=ModelKind.DECODER,
        task=task,
        hidden_size=hidden_size,
        vocab_size=embedding.vocab_size,
        max_positions=_longest(decoder, max_positions),
        decoder=decoder,
        head=head,
        labels=names if task in (Task.SEQUENCE_CLASSIFICATION, Task.TOKEN_CLASSIFICATION) else (),
    )
    return Built(spec, (*rows, *head_rows), (*OTHER_HEADS, *ignored))


def _longest(stack, max_positions):
    """Dynamic scaling stretches the positions beyond the length of training, up to its factor."""
    for layer in stack.layers:
        positions = layer.attention.positions
        if isinstance(positions, Rotary) and positions.scaling is not None and positions.scaling.kind == "dynamic":
            return int(max_positions * positions.scaling.factor)
    return max_positions


def token_embedding(config, **fields):
    """EmbeddingSpec of token vectors as wide as the model."""
    return EmbeddingSpec(vocab_size=config["vocab_size"], width=config["hidden_size"], **fields)


def layer_types(config, count, default):
    """Which kind of attention each layer has.

    Parameters
    ----------
    config : Config
    count : int
        Number of layers.
    default : callable
        default(i) -> "full_attention" or "sliding_attention" where the config has no layer_types.

    Returns
    -------
    list of str

    Raises
    ------
    UnsupportedModel
        If the list has another length or an unknown kind.
    """
    types = config.get("layer_types") or [default(index) for index in range(count)]
    unknown = sorted(set(types) - {"full_attention", "sliding_attention"})
    if unknown or len(types) != count:
        raise UnsupportedModel(f"config of {config.name}: layer_types has {len(types)} entries for {count} layers, unknown kinds {unknown}")
    return types
