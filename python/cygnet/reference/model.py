"""A whole forward pass in plain NumPy, driven by a ModelSpec: readable, slow, without a cache; the oracle of the engine."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cygnet.architectures.spec import Mixing, Placement, Pool, PositionTable, Task
from cygnet.architectures.tokens import shifted_right, until_last_end
from cygnet.errors import OptionError
from cygnet.reference import ops
from cygnet.reference.attention import attention, linear, norm
from cygnet.reference.recurrent import ssru


@dataclass
class ReferenceOutput:
    """What one sequence gives.

    Attributes
    ----------
    hidden : (T, D) float32
        Last hidden states, after the final norm: of the decoder, or of an encoder alone.
    states : list of (T, D) float32
        The embeddings and the result of each layer.
    logits : (T, V), (labels,) or None
        What the head makes of them.
    pooled : (D,) or None
    encoder : ReferenceOutput or None
        The encoder's part of an encoder-decoder.
    attention, cross : list of (H, T, S) float32
        Attention weights of each layer, and those of its cross-attention, where they were asked for.
    """

    hidden: np.ndarray
    states: list = field(default_factory=list)
    logits: np.ndarray | None = None
    pooled: np.ndarray | None = None
    encoder: ReferenceOutput | None = None
    attention: list = field(default_factory=list)
    cross: list = field(default_factory=list)


class ReferenceModel:
    """Runs any ModelSpec on named tensors.

    Parameters
    ----------
    spec : ModelSpec
    tensors : dict of str to array or WeightView
        By the names of cygnet.architectures.spec.
    dtype : dtype, optional
        float32, or float64 for a reference with less rounding.

    Examples
    --------
    >>> from cygnet.architectures.registry import load_spec
    >>> loaded = load_spec("folder")  # doctest: +SKIP
    >>> ReferenceModel(loaded.spec, loaded.weights).forward([[1, 2, 3]])[0].logits.shape  # doctest: +SKIP
    (3, 32000)
    """

    def __init__(self, spec, tensors, dtype=np.float32):
        self.spec = spec
        self.tensors = {
            name: np.asarray(tensor.to_float32() if hasattr(tensor, "to_float32") else tensor).astype(dtype, copy=False)
            for name, tensor in tensors.items()
        }

    def forward(self, inputs, *, type_ids=None, decoder_ids=None, attention_maps=False):
        """Run sequences one by one, with no padding among them.

        Parameters
        ----------
        inputs : list
            Token ids of each sequence, or (channels, height, width) images.
        type_ids : list of list of int, optional
        decoder_ids : list of list of int, optional
            What the decoder of an encoder-decoder reads.
        attention_maps : bool
            Keep the attention weights of every layer.

        Returns
        -------
        list of ReferenceOutput
        """
        self._maps = attention_maps
        types = type_ids or [None] * len(inputs)
        decoders = decoder_ids if decoder_ids is not None else [None] * len(inputs)
        return [self._one(ids, kinds, ids_out) for ids, kinds, ids_out in zip(inputs, types, decoders, strict=True)]

    def _one(self, inputs, types, decoder_ids):
        spec = self.spec
        if spec.encoder is None:
            return self._finish(self._stack("decoder", spec.decoder, inputs, types))
        encoder = self._stack("encoder", spec.encoder, inputs, types)
        if spec.decoder is None:
            return self._finish(encoder)
        if decoder_ids is None and spec.task in (Task.SEQUENCE_CLASSIFICATION, Task.QUESTION_ANSWERING):
            decoder_ids = shifted_right(inputs, spec)
        if decoder_ids is None:
            return ReferenceOutput(encoder.hidden, encoder=encoder)
        output = self._stack("decoder", spec.decoder, decoder_ids, None, memory=encoder.hidden)
        output.encoder = encoder
        if spec.task is Task.SEQUENCE_CLASSIFICATION:
            output.hidden = output.hidden[: until_last_end(inputs, spec.tokens)]
        return self._finish(output)

    def _finish(self, output):
        """Head and pooled vector."""
        spec = self.spec
        if spec.head is not None:
            output.logits = self._head(spec.head, output.hidden)
        if spec.pooler is not None:
            output.pooled = self._head(spec.pooler, output.hidden)
        return output

    def _stack(self, name, stack, inputs, types, memory=None):
        x = self._embed(name, stack, inputs, types)
        output = ReferenceOutput(x, [x])
        for position, layer in enumerate(stack.layers):
            index = stack.weight_layers[position] if stack.weight_layers else position
            x = self._layer(x, f"{name}.{index}", layer, name, memory, output)
            if position == 0 and stack.convolution is not None:
                x = self._convolved(name, stack.convolution, x, output.states[0])
            output.states.append(x)
        if stack.final_norm is not None:
            x = norm(x, self.tensors, f"{name}.final_norm", stack.final_norm)
        if stack.final_project:
            x = linear(x, self.tensors, f"{name}.final_project")
        output.hidden = x
        return output

    def _embed(self, name, stack, inputs, types):
        embedding, tensors = stack.embedding, self.tensors
        if embedding.patches is not None:
            x = self._patches(name, embedding.patches, inputs)
            ids = np.arange(len(x))
        else:
            ids = np.asarray(inputs, np.int64)
            table = "encoder" if stack.shared_embedding else name
            weight = tensors[f"{table}.embed.token.weight"]
            x = weight[ids] * weight.dtype.type(embedding.scale)
        positions = 0
        if embedding.positions is not None and embedding.positions.kind is not PositionTable.NONE:
            positions = tensors[f"{name}.embed.position.weight"][position_rows(embedding.positions, ids)]
        if not embedding.positions_after_project:
            x = x + positions
        if embedding.type_count:
            kinds = np.zeros(len(ids), np.int64) if types is None else np.asarray(types, np.int64)
            x = x + tensors[f"{name}.embed.type.weight"][kinds]
        if embedding.norm is not None:
            x = norm(x, tensors, f"{name}.embed.norm", embedding.norm)
        if embedding.project:
            x = linear(x, tensors, f"{name}.embed.project")
        return x + positions if embedding.positions_after_project else x

    def _convolved(self, name, convolution, x, embedded):
        """What the first layer made, plus a convolution of the embeddings, normed."""
        function = ops.ACTIVATIONS[convolution.activation.name.lower()]
        y = function(linear(windows(embedded, convolution.size), self.tensors, f"{name}.convolution"))
        return norm(x + y, self.tensors, f"{name}.convolution_norm", convolution.norm)

    def _patches(self, name, patches, image):
        """The class token and what else stands in front, then one row a patch, left to right and top to bottom."""
        size = patches.patch_size
        channels, height, width = image.shape
        cut = image.reshape(channels, height // size, size, width // size, size).transpose(1, 3, 0, 2, 4)
        rows = linear(cut.reshape(-1, channels * size * size), self.tensors, f"{name}.embed.patch")
        return np.concatenate([self.tensors[f"{name}.embed.class"].reshape(patches.front, -1), rows])

    def _layer(self, x, name, layer, stack, memory, output):
        placement = layer.placement
        maps, cross_maps = (output.attention, output.cross) if self._maps else (None, None)
        scale = x.dtype.type(layer.residual_scale)

        def attend(y):
            if layer.mixing is Mixing.SSRU:
                return ssru(y, self.tensors, f"{name}.recurrent") * scale
            return attention(y, self.tensors, f"{name}.attention", layer.attention, stack, maps=maps) * scale

        def look_up(y):
            return attention(y, self.tensors, f"{name}.cross", layer.cross, stack, memory, cross_maps) * scale

        def feed(y):
            return self._feed_forward(y, f"{name}.ffn", layer.ffn) * scale

        def normed(y, which):
            return norm(y, self.tensors, f"{name}.{which}", layer.norm)

        if placement in (Placement.PARALLEL, Placement.PARALLEL_SPLIT):
            y = normed(x, "attention_norm")
            return x + attend(y) + feed(y if placement is Placement.PARALLEL else normed(x, "ffn_norm"))
        for sublayer, which in ((attend, "attention"), (look_up, "cross"), (feed, "ffn")):
            if sublayer is look_up and layer.cross is None:
                continue
            if placement is Placement.POST:
                x = normed(x + sublayer(x), f"{which}_norm")
            elif placement is Placement.NORMED:
                x = normed(x, f"{which}_norm")
                x = x + sublayer(x)
            elif placement is Placement.OUTPUT:
                x = x + normed(sublayer(x), f"{which}_norm")
            elif placement is Placement.SANDWICH:
                x = x + normed(sublayer(normed(x, f"{which}_norm")), f"{which}_post_norm")
            else:
                skipped = which == "attention" and not layer.attention_norm
                x = x + sublayer(x if skipped else normed(x, f"{which}_norm"))
        return x

    def _feed_forward(self, x, name, ffn):
        if ffn.experts is None:
            return self._expert(x, name, ffn)
        experts, tensors = ffn.experts, self.tensors
        weights = ops.softmax(ops.linear(x, tensors[f"{name}.router.weight"]))
        chosen = np.argsort(-weights, axis=-1, kind="stable")[:, : experts.top_k]
        shares = np.take_along_axis(weights, chosen, -1)
        if experts.renormalize:
            shares = shares / shares.sum(-1, keepdims=True)
        y = np.zeros_like(x)
        for expert in np.unique(chosen):
            token, rank = np.nonzero(chosen == expert)
            y[token] += self._expert(x[token], f"{name}.experts.{expert}", ffn) * shares[token, rank, None]
        if experts.shared_hidden_size:
            shared = self._expert(x, f"{name}.shared", ffn)
            gate = ops.sigmoid(ops.linear(x, tensors[f"{name}.shared_gate.weight"])) if experts.shared_gate else x.dtype.type(1)
            y = y + shared * gate
        return y

    def _expert(self, x, name, ffn):
        function = ops.ACTIVATIONS[ffn.activation.name.lower()]
        hidden = linear(x, self.tensors, f"{name}.up")
        hidden = function(linear(x, self.tensors, f"{name}.gate")) * hidden if ffn.gated else function(hidden)
        return linear(hidden, self.tensors, f"{name}.down")

    def _head(self, head, hidden):
        x = (hidden if head.pool_outputs else _pooled(head.pool, hidden)) * hidden.dtype.type(head.hidden_scale)
        for step in head.steps:
            name = f"head.{step.name}"
            if step.norm is not None:
                x = norm(x, self.tensors, name, step.norm)
                continue
            weight = self.tensors[self._embedding_name() if step.tied else f"{name}.weight"]
            x = ops.ACTIVATIONS[step.activation.name.lower()](ops.linear(x, weight, self.tensors.get(f"{name}.bias")))
        x = x * hidden.dtype.type(head.scale)
        x = x if head.softcap is None else ops.softcap(x, head.softcap)
        return _pooled(head.pool, x) if head.pool_outputs else x

    def _embedding_name(self):
        own = self.spec.decoder is not None and not self.spec.decoder.shared_embedding
        return f"{'decoder' if own else 'encoder'}.embed.token.weight"


def windows(x, size):
    """(T, size * D): each position with its neighbours on both sides, zeros beyond the ends."""
    padded = np.pad(x, ((size // 2, size // 2), (0, 0)))
    return np.concatenate([padded[place : place + len(x)] for place in range(size)], axis=1)


def position_rows(positions, ids):
    """Row of the position table for each token of a sequence."""
    length = len(ids)
    if positions.padding_id is None:
        rows = positions.offset + np.arange(length)
    else:
        real = ids != positions.padding_id
        rows = np.where(real, positions.offset + np.cumsum(real) - 1, positions.padding_row)
    if length and rows.max() >= positions.count:
        raise OptionError(f"a sequence of {length} tokens needs position {rows.max()}, the table has {positions.count} rows")
    return rows


def _pooled(pool, hidden):
    if pool is Pool.FIRST:
        return hidden[0]
    if pool is Pool.LAST:
        return hidden[-1]
    if pool is Pool.FIRST_AND_MEAN:
        return np.concatenate([hidden[0], hidden[1:].mean(0)])
    return hidden.mean(0) if pool is Pool.MEAN else hidden
