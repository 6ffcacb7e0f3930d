"""Tagging of tokens: named entities, parts of speech. Labels of the B-/I- kind are joined into entities (Ramshaw & Marcus 1995)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, overload

import numpy as np

from cygnet.errors import OptionError
from cygnet.models.base import as_batch, is_single
from cygnet.models.heads import HeadModel, softmax

AGGREGATIONS = ("none", "simple", "first", "average", "max")
# Tokens that neighbouring windows of a long text share.
STRIDE = 64


class Entity(NamedTuple):
    """A stretch of a text with its label; text[start:end] is what it stands for."""

    label: str
    text: str
    start: int
    end: int
    score: float


class _Unit(NamedTuple):
    """A token or a word with the probabilities of its labels."""

    start: int
    end: int
    probabilities: np.ndarray


class TokenClassifier(HeadModel):
    """A Transformer that labels every token of a text."""

    @overload
    def tag(self, texts: str, *, aggregation: str = ...) -> list[Entity]: ...
    @overload
    def tag(self, texts: Iterable[str], *, aggregation: str = ...) -> list[list[Entity]]: ...

    def tag(self, texts: str | Iterable[str], *, aggregation: str = "simple") -> Any:
        """The labelled stretches of a text, or of each of several; the label "O" is left out.

        Parameters
        ----------
        texts : str or list of str
            A text beyond the length limit is read in overlapping windows; nothing is cut.
        aggregation : str
            "none": one entity a token. "simple": neighbouring tokens of one kind are joined, the score is their mean. "first", "average", "max": a
            word gets one label first (of its first token, of the mean of its tokens, of the token that is most sure), then words are joined.

        Returns
        -------
        list of Entity, or a list of them
        """
        if aggregation not in AGGREGATIONS:
            raise OptionError(f"aggregation is {aggregation!r}: one of {', '.join(AGGREGATIONS)} is wanted")
        batch = as_batch(texts)
        if not all(isinstance(text, str) for text in batch):
            raise OptionError("tag needs texts: entities are stretches of them")
        windows = [(index, encoding) for index, text in enumerate(batch) for encoding in self._windows(text) if len(encoding.ids)]
        outputs = self.logits([encoding.ids for _, encoding in windows])
        read: list[list] = [[] for _ in batch]
        for (index, encoding), logits in zip(windows, outputs, strict=True):
            read[index].append((encoding, logits))
        results = [self._entities(text, parts, aggregation) for text, parts in zip(batch, read, strict=True)]
        return results[0] if is_single(texts) else results

    def _windows(self, text: str) -> list:
        limit = self.max_length
        encoding = self.tokenizer.encode(text)
        if limit is None or len(encoding.ids) <= limit:
            return [encoding]
        stride = min(STRIDE, limit // 4)
        encoding = self.tokenizer.encode(text, max_length=limit, stride=stride, return_overflow=True)
        return [encoding, *encoding.overflowing]

    def _entities(self, text: str, windows: list, aggregation: str) -> list[Entity]:
        units, words = _tokens(windows)
        if aggregation in ("first", "average", "max"):
            units = [_word(group, aggregation) for group in _by_word(units, words)]
        entities = [self._entity(text, [unit]) for unit in units] if aggregation == "none" else self._joined(text, units)
        return [entity for entity in entities if entity.label != "O"]

    def _joined(self, text: str, units: list[_Unit]) -> list[Entity]:
        groups: list[list[_Unit]] = []
        kind = None
        for unit in units:
            prefix, name = _split_label(self.labels[unit.probabilities.argmax()])
            if groups and name == kind and prefix != "B":
                groups[-1].append(unit)
            else:
                groups.append([unit])
            kind = name
        return [self._entity(text, group)._replace(label=_split_label(self._label(group[0]))[1]) for group in groups]

    def _entity(self, text: str, units: list[_Unit]) -> Entity:
        start, end = units[0].start, units[-1].end
        return Entity(self._label(units[0]), text[start:end], start, end, float(np.mean([unit.probabilities.max() for unit in units])))

    def _label(self, unit: _Unit) -> str:
        return self.labels[unit.probabilities.argmax()]


def _tokens(windows: list) -> tuple[list[_Unit], list]:
    """The tokens of a text from all its windows, each once, and the word each belongs to.

    Where two windows overlap, the first half comes from the earlier one and the rest from the later, so that every token has context on both sides.
    """
    units: list[_Unit] = []
    words: list = []
    for encoding, logits in windows:
        probabilities = softmax(logits)
        text_tokens = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
        fresh = [_Unit(*encoding.offsets[i], probabilities[i]) for i in text_tokens]
        fresh_words = [encoding.word_ids[i] for i in text_tokens]
        shared = sum(unit.end > fresh[0].start for unit in units) if fresh else 0
        keep, drop = len(units) - shared // 2, shared - shared // 2
        units = units[:keep] + fresh[drop:]
        words = words[:keep] + fresh_words[drop:]
    return units, words


def _by_word(units: list[_Unit], words: list) -> list[list[_Unit]]:
    groups: list[list[_Unit]] = []
    previous = object()
    for unit, word in zip(units, words, strict=True):
        if word != previous:
            groups.append([])
        groups[-1].append(unit)
        previous = word
    return groups


def _word(tokens: list[_Unit], aggregation: str) -> _Unit:
    if aggregation == "first":
        probabilities = tokens[0].probabilities
    elif aggregation == "max":
        probabilities = max(tokens, key=lambda token: token.probabilities.max()).probabilities
    else:
        probabilities = np.mean([token.probabilities for token in tokens], axis=0)
    return _Unit(tokens[0].start, tokens[-1].end, probabilities)


def _split_label(label: str) -> tuple[str, str]:
    """("B", "PER") of "B-PER"; a label without such a prefix continues its own kind."""
    return (label[0], label[2:]) if label[:2] in ("B-", "I-") else ("I", label)
