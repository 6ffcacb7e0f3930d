"""Base of the models with a task head: token ids to logits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np

from cygnet.architectures.spec import Pool
from cygnet.errors import OptionError
from cygnet.models.aliases import Float32, Ids
from cygnet.models.base import is_ids
from cygnet.models.text_model import TextModel, numbers, split_rows


class HeadModel(TextModel):
    """An encoder with a head; the head sees every token or one pooled row a text, as the spec says."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the head's outputs."""
        return self.spec.labels

    @property
    def per_token(self) -> bool:
        """Whether the head gives outputs for every token, rather than for every text."""
        return self.spec.head.pool is Pool.ALL

    def logits(self, rows: Sequence[Sequence[int]], type_ids: Sequence[Any] | None = None) -> list[Float32]:
        """Head outputs of rows of ids: (T, F) float32 each for a head on tokens, (F,) for one on texts.

        Raises
        ------
        OptionError
            A row has no tokens.
        """
        empty = next((i for i, row in enumerate(rows) if len(row) == 0), None)
        if empty is not None:
            raise OptionError(f"text {empty} has no tokens: there is nothing to classify")

        def finish(_, hidden, offsets):
            outputs = numbers(self.engine.head(hidden, offsets), "logits")
            return split_rows(outputs, offsets) if self.per_token else list(outputs)

        return self.run(rows, finish, type_ids if self._has_types else None)

    @overload
    def forward(self, ids: Ids, *, type_ids: Ids | None = ...) -> Float32: ...
    @overload
    def forward(self, ids: Iterable[Ids], *, type_ids: Iterable[Ids] | None = ...) -> list[Float32]: ...

    def forward(self, ids: Ids | Iterable[Ids], *, type_ids: Ids | Iterable[Ids] | None = None) -> Any:
        """Logits of token ids as they are: no special tokens are added and nothing is cut.

        Parameters
        ----------
        ids : list of int, or list of lists of int
        type_ids : of the same shape, optional
            Token types (segments); all 0 by default.

        Returns
        -------
        (T, F) float32 for a head on tokens, (F,) float32 for one on texts, or a list of them
        """
        rows, types = self._checked_rows(ids, type_ids)
        outputs = self.logits(rows, types)
        return outputs[0] if is_ids(ids) else outputs

    @property
    def _has_types(self) -> bool:
        return self.spec.encoder is not None and self.spec.encoder.embedding.type_count > 0


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities over the last axis, in float64."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) in float64, without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * logits.astype(np.float64)))
