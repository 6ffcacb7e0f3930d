"""Masked language models: likely tokens in place of a mask (Devlin et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from cygnet.errors import OptionError
from cygnet.models.base import as_batch, is_single
from cygnet.models.heads import HeadModel, softmax
from cygnet.models.text_model import numbers


class Fill(NamedTuple):
    """A token in place of a mask; `text` is the whole text with it."""

    token: str
    id: int
    score: float
    text: str


class MaskedLM(HeadModel):
    """A bidirectional Transformer that predicts masked tokens.

    Examples
    --------
    >>> import cygnet
    >>> model = cygnet.load("path/to/bert")                                          # doctest: +SKIP
    >>> [fill.token for fill in model.fill_mask("Paris is the [MASK] of France.")]     # doctest: +SKIP
    ['capital', 'heart', 'center', 'centre', 'city']
    """

    @property
    def mask_token(self) -> str:
        """What stands for a missing token in a text."""
        token = self.tokenizer.settings.get("mask_token")
        if token is None or self.tokenizer.token_to_id(token) is None:
            raise OptionError(f"the tokenizer of {self.source} names no mask token")
        return token

    def fill_mask(self, texts: str | Iterable[str], *, top_k: int = 5, truncate: bool = True) -> list[Any]:
        """The most likely tokens for each mask of a text, or of each of several.

        Parameters
        ----------
        texts : str or list of str
            Each with at least one mask token.
        top_k : int
        truncate : bool
            Cut longer texts to the limit; False raises instead.

        Returns
        -------
        list of Fill, best first
            For a text with several masks a list of such lists, in order; for several texts a list of these.

        Raises
        ------
        OptionError
            A text without a mask.
        """
        if top_k < 1:
            raise OptionError(f"top_k is {top_k}: at least 1 is wanted")
        batch = as_batch(texts)
        mask = self.tokenizer.token_to_id(self.mask_token)
        rows, _ = self.tokenize(batch, truncate=truncate)
        for index, row in enumerate(rows):
            if mask not in row:
                raise OptionError(f"text {index} holds no {self.mask_token} (within the length limit)")
        results = [self._fills(row, mask, logits, top_k) for row, logits in zip(rows, self._mask_logits(rows, mask), strict=True)]
        return results[0] if is_single(texts) else results

    def _mask_logits(self, rows: list[list[int]], mask: int) -> list[np.ndarray]:
        """Logits of the masked positions alone: (masks, V) float32 a row, so that no other token pays for the vocabulary."""

        def finish(indices, hidden, offsets):
            places = [np.flatnonzero(np.array(rows[i]) == mask) + offset for i, offset in zip(indices, offsets[:-1], strict=True)]
            chosen = np.concatenate(places)
            ends = np.cumsum([0, *map(len, places)])
            outputs = numbers(self.engine.head(np.ascontiguousarray(hidden[chosen]), np.arange(len(chosen) + 1)), "logits")
            return [outputs[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]

        return self.run(rows, finish)

    def _fills(self, row: list[int], mask: int, logits: np.ndarray, top_k: int):
        places = [i for i, token in enumerate(row) if token == mask]
        fills = []
        for place, probabilities in zip(places, softmax(logits), strict=True):
            best = np.argsort(-probabilities, kind="stable")[:top_k]
            fills.append([self._fill(row, place, int(token), float(probabilities[token])) for token in best])
        return fills[0] if len(fills) == 1 else fills

    def _fill(self, row: list[int], place: int, token: int, score: float) -> Fill:
        text = self.tokenizer.decode([*row[:place], token, *row[place + 1 :]])
        return Fill(self.tokenizer.decode([token], skip_special_tokens=False).strip(), token, score, text)
