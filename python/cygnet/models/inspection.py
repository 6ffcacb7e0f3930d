"""Looking inside a model: states and attention weights of every layer, by the NumPy reference."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cygnet.errors import OptionError


@dataclass
class Inspection:
    """What a model does with one text.

    Attributes
    ----------
    tokens : list of str
        The pieces that were read (of the decoder, for an encoder-decoder model).
    ids : list of int
    states : list of (T, D) float32
        The embeddings, then the result of each layer.
    attention : list of (H, T, T) float32
        Weights of each layer's self-attention: row q says how much of each position goes into position q.
    cross : list of (H, T, S) float32
        Weights of each layer's cross-attention on the source, for encoder-decoder models.
    hidden : (T, D) float32
        The last states, after the final norm.
    logits : array or None
        What the model's head makes of them.
    encoder : Inspection or None
        The source's part of an encoder-decoder model.
    """

    tokens: list[str]
    ids: list[int]
    states: list[np.ndarray]
    attention: list[np.ndarray]
    hidden: np.ndarray
    logits: np.ndarray | None = None
    cross: list[np.ndarray] = field(default_factory=list)
    encoder: Inspection | None = None

    def nearest(self, layer: int = -1) -> list[tuple[str, float]]:
        """For each token the one it attends to most in a layer, averaged over heads, and how much."""
        weights = self.attention[layer].mean(axis=0)
        return [(self.tokens[i], float(row[i])) for row, i in zip(weights, weights.argmax(axis=1), strict=True)]


def inspect(model, text, decoder) -> Inspection:
    """See Model.inspect."""
    from cygnet.reference.model import ReferenceModel

    model.check_open()
    spec = model.spec
    if spec.encoder is not None and spec.encoder.embedding.patches is not None:
        raise OptionError("inspect reads texts; this model reads images")
    ids = model.encode_text(text)
    if not ids:
        raise OptionError("the text has no tokens: there is nothing to look at")
    model.check_length(len(ids), "the text")
    reference = ReferenceModel(spec, model.views)
    if spec.encoder is None or spec.decoder is None:
        return _view(model, ids, reference.forward([ids], attention_maps=True)[0])
    start = spec.tokens.decoder_start
    behind = [] if decoder is None else model.encode_text(decoder)
    read = [*([start] if start is not None else []), *behind]
    if not read:
        raise OptionError("the decoder reads nothing: give it tokens with decoder=")
    output = reference.forward([ids], decoder_ids=[read], attention_maps=True)[0]
    found = _view(model, read, output)
    found.encoder = _view(model, ids, output.encoder)
    return found


def _view(model, ids: list[int], output) -> Inspection:
    tokenizer = model._tokenizer
    tokens = [str(i) if tokenizer is None else tokenizer.id_to_token(i) or str(i) for i in ids]
    return Inspection(tokens, ids, output.states, output.attention, output.hidden, output.logits, output.cross)
