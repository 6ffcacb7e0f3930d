"""Encoders with a convolution behind their first layer (DeBERTa v2): run in pieces, with the convolution between them."""

from __future__ import annotations

import numpy as np

from cygnet._core._stack import Stack
from cygnet.packing import describe_norm


class Convolved:
    """The pieces of one encoder: its embedding, its first layer, the convolution, and the other layers behind its norm.

    Parameters
    ----------
    builder : StackBuilder
    """

    def __init__(self, builder):
        packer, spec, name = builder.packer, builder.stack.convolution, builder.name
        self.size = spec.size
        self.embedding = builder.part([], embedding=True)
        self._first = builder.part([0])
        self._rest = builder.part(range(1, len(builder.stack.layers)), norm=describe_norm(packer, f"{name}.convolution_norm", spec.norm))
        weight = packer.weight(f"{name}.convolution")
        self._convolution = Stack(weight.k, 0, 0)
        self._convolution.embedding()
        self._convolution.finish()
        self._convolution.head([(weight, spec.activation.value, None)])

    def run(self, runner, counts, ids, hidden, **rows):
        """The encoder's states of a ragged batch into `hidden` (T, D); `rows` are those of the position and type tables, as Runner.run takes them."""
        embedded, windows = np.empty_like(hidden), np.zeros((len(hidden), self.size * hidden.shape[1]), np.float32)
        runner.run(self.embedding, [], counts, ids, hidden=embedded, **rows)
        runner.run(self._first, [], counts, None, embedded=embedded, hidden=hidden)
        reach, width, start = self.size // 2, hidden.shape[1], 0
        for count in counts:
            own = slice(start, start + count)
            for place in range(self.size):
                shift = place - reach
                first, last = max(0, -shift), count - max(0, shift)
                if first < last:
                    target = windows[own][first:last, place * width : (place + 1) * width]
                    target[:] = embedded[own][first + shift : last + shift]
            start += count
        added = np.empty_like(hidden)
        runner.run(self._convolution, [], [1] * len(hidden), None, embedded=windows, head_rows=np.arange(len(hidden)), logits=added)
        runner.run(self._rest, [], counts, None, embedded=hidden + added, hidden=hidden)
