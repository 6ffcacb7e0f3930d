"""Base of the models that read whole texts at once (encoders and their heads): texts to ids within the length limit, ragged batches to rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import numpy as np

from cygnet.errors import ContextOverflow, NumericError, OptionError
from cygnet.generation.option_checks import flag
from cygnet.models.aliases import Float32, Text
from cygnet.models.base import Model, Parts, as_batch, as_rows, is_ids, is_single, token_batches

# Tokens of one forward pass: enough rows to keep every core busy, few enough for activations to stay in cache.
BATCH_TOKENS = 512


class TextModel(Model):
    """An encoder with its length limit.

    Attributes
    ----------
    max_length : int or None
        Longest input in tokens, special ones included. May be set, up to the model's positions.
    """

    def __init__(self, parts: Parts, max_length: int | None = None):
        super().__init__(parts)
        limits = [n for n in (max_length, parts.max_context) if n is not None]
        self._max_length = min(limits, default=None)

    def __repr__(self) -> str:
        cut = "" if self._max_length in (None, self.max_context) else f", texts up to {self._max_length} tokens"
        return f"{super().__repr__()[:-1]}{cut}>"

    @property
    def max_length(self) -> int | None:
        """Longest input in tokens, special ones included; None where there is no limit. May be set, up to the model's positions."""
        return self._max_length

    @max_length.setter
    def max_length(self, value: int | None) -> None:
        self._max_length = self._checked_limit(value)

    def _checked_limit(self, value: int | None) -> int | None:
        if value is None:
            return self.max_context
        if value < 1 or (self.max_context is not None and value > self.max_context):
            raise OptionError(f"max_length is {value}: 1 to {self.max_context or 'any number'} is wanted")
        return value

    def tokenize(self, texts: Sequence[Text], *, max_length: int | None = None, truncate: bool = True) -> tuple[list[list[int]], list[int]]:
        """Ids of every text within the limit, and the indices of the texts that were cut.

        Raises
        ------
        ContextOverflow
            With truncate=False, for the first text beyond the limit.
        """
        flag("truncate", truncate)
        self.check_open()
        limit = self._max_length if max_length is None else self._checked_limit(max_length)
        where = [i for i, text in enumerate(texts) if isinstance(text, str)]
        found = self.tokenizer.encode_batch([texts[i] for i in where], threads=self.engine.threads) if where else ()
        encoded = dict(zip(where, found, strict=True))
        rows, cut = [], []
        for index, text in enumerate(texts):
            ids = list(encoded[index].ids) if index in encoded else self.check_ids(text)
            if limit is not None and len(ids) > limit:
                if not truncate:
                    raise ContextOverflow(f"text {index} has {len(ids)} tokens, the limit is {limit}: shorten it, or cut it with truncate=True")
                cut.append(index)
                ids = list(self.tokenizer.encode(text, max_length=limit).ids) if isinstance(text, str) else ids[:limit]
            rows.append(ids)
        return rows, cut

    def tokenize_pairs(self, pairs: Sequence[tuple[str, str]], *, truncate: bool = True) -> tuple[list, list[int]]:
        """Encodings of pairs of texts within the limit (the longer text gives way), and the indices of the pairs that were cut."""
        flag("truncate", truncate)
        self.check_open()
        wrong = next((i for i, pair in enumerate(pairs) if not all(isinstance(text, str) for text in pair)), None)
        if wrong is not None:
            raise OptionError(f"pair {wrong} is {pairs[wrong]!r:.80}: two texts are wanted")
        encodings, cut = list(self.tokenizer.encode_batch(pairs, threads=self.engine.threads)) if pairs else [], []
        for index, encoding in enumerate(encodings):
            if self._max_length is not None and len(encoding.ids) > self._max_length:
                if not truncate:
                    has = f"pair {index} has {len(encoding.ids)} tokens, the limit is {self._max_length}"
                    raise ContextOverflow(f"{has}: shorten it, or cut it with truncate=True")
                cut.append(index)
                encodings[index] = self.tokenizer.encode(*pairs[index], max_length=self._max_length)
        return encodings, cut

    def run(self, rows: Sequence[Sequence[int]], finish: Callable[..., Any], type_ids: Sequence[Any] | None = None) -> list[Any]:
        """Hidden states of ragged batches, handed to `finish(indices, hidden, offsets)`; its results, one a row, in the order of the rows.

        A row without tokens is left out of the passes and its result is None.
        """
        results: list = [None] * len(rows)
        filled = [i for i, row in enumerate(rows) if len(row)]
        for group in token_batches([len(rows[i]) for i in filled], BATCH_TOKENS):
            indices = [filled[i] for i in group]
            types = None if type_ids is None else [type_ids[i] for i in indices]
            hidden, offsets = self.engine.hidden([rows[i] for i in indices], type_ids=types)
            for index, result in zip(indices, finish(indices, hidden, offsets), strict=True):
                results[index] = result
        return results

    def _checked_rows(self, ids, type_ids=None) -> tuple[list[list[int]], list | None]:
        """Rows of ids (one or several) and of their types, inside the vocabulary and within the context."""
        rows = [self.check_ids(row) for row in as_rows(ids)]
        for index, row in enumerate(rows):
            self.check_length(len(row), f"sequence {index}")
        if type_ids is None:
            return rows, None
        types = [type_ids] if is_ids(ids) else as_rows(type_ids)
        if len(types) != len(rows) or not all(is_ids(kinds) and len(kinds) == len(row) for kinds, row in zip(types, rows, strict=True)):
            raise OptionError("type_ids must have one type for each token id, a whole number")
        return rows, types

    @overload
    def hidden_states(self, texts: Text) -> Float32: ...
    @overload
    def hidden_states(self, texts: Iterable[Text]) -> list[Float32]: ...

    def hidden_states(self, texts: Text | Iterable[Text]) -> Any:
        """Last hidden states: (T, D) float32 for one text or list of ids, a list of them for several."""
        rows, _ = self.tokenize(as_batch(texts), truncate=False)
        states = self.run(rows, lambda _, hidden, offsets: split_rows(hidden, offsets))
        states = [np.zeros((0, self.spec.hidden_size), np.float32) if s is None else s for s in states]
        return states[0] if is_single(texts) else states


def split_rows(hidden, offsets) -> list[np.ndarray]:
    """The rows of each sequence, copied so that no result keeps a whole batch alive."""
    return [hidden[a:b].copy() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]


def numbers(values: np.ndarray, what: str) -> np.ndarray:
    """The values as they are; NumericError where one of them is no finite number."""
    if not np.isfinite(values).all():
        raise NumericError(f"the model's {what} are not all finite numbers: its weights or settings are damaged")
    return values
