"""Classification of texts and of pairs of texts; reranking with a cross-encoder (Nogueira & Cho 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np

from cygnet.errors import OptionError, UnsupportedModel
from cygnet.models.aliases import Float32, Text
from cygnet.models.base import Parts, as_batch, is_single
from cygnet.models.heads import HeadModel, sigmoid, softmax

PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")


@dataclass(frozen=True)
class Classification:
    """What a text was classified as.

    Attributes
    ----------
    label : str
        The most likely label.
    score : float
        Its probability (softmax; sigmoid for models with independent labels; the raw output for regression).
    scores : dict of str to float
        The same for every label, best first.
    truncated : bool
        Whether the text was cut to the length limit.
    """

    label: str
    score: float
    scores: dict[str, float]
    truncated: bool = False


class Ranked(NamedTuple):
    """A document and how well it answers the query."""

    index: int
    score: float
    document: str


class SequenceClassifier(HeadModel):
    """A Transformer that gives each text one label or several.

    Raises
    ------
    UnsupportedModel
        The config's problem_type is not known.

    Examples
    --------
    >>> import cygnet
    >>> model = cygnet.load("path/to/sentiment-model")     # doctest: +SKIP
    >>> model.classify("What a lovely day").label            # doctest: +SKIP
    'POSITIVE'
    """

    def __init__(self, parts: Parts, max_length: int | None = None):
        super().__init__(parts, max_length)
        problem = self.config.get("problem_type")
        if problem is not None and problem not in PROBLEMS:
            raise UnsupportedModel(f"config: problem_type = {problem!r} is not known (known: {', '.join(PROBLEMS)})")

    @overload
    def classify(self, texts: Text, pairs: Text | None = ..., *, truncate: bool = ...) -> Classification: ...
    @overload
    def classify(self, texts: Iterable[Text], pairs: Iterable[Text] | None = ..., *, truncate: bool = ...) -> list[Classification]: ...

    def classify(self, texts: Text | Iterable[Text], pairs: Text | Iterable[Text] | None = None, *, truncate: bool = True) -> Any:
        """The labels of a text, or of each of several.

        Parameters
        ----------
        texts : str, list of int, or a list of them
        pairs : the same, optional
            Second texts, for models that judge pairs (premise and hypothesis, question and answer).
        truncate : bool
            Cut longer texts to the limit; False raises instead.

        Returns
        -------
        Classification, or a list of them
            An empty list for an empty list.
        """
        outputs, cut = self._outputs(as_batch(texts), None if pairs is None else as_batch(pairs, "pairs"), truncate)
        results = [self._classification(logits, index in cut) for index, logits in enumerate(outputs)]
        return results[0] if is_single(texts) else results

    def _outputs(self, texts: list, pairs: list | None, truncate: bool):
        """Logits of every text or pair, and the indices of those that were cut."""
        if pairs is None:
            rows, cut = self.tokenize(texts, truncate=truncate)
            return self.logits(rows), set(cut)
        if len(pairs) != len(texts):
            raise OptionError(f"{len(texts)} texts and {len(pairs)} pairs: equal numbers are wanted")
        encoded, cut = self.tokenize_pairs(list(zip(texts, pairs, strict=True)), truncate=truncate)
        return self.logits([e.ids for e in encoded], [e.type_ids for e in encoded]), set(cut)

    def _classification(self, logits: np.ndarray, truncated: bool) -> Classification:
        values = self._activated(logits)
        order = np.argsort(-values, kind="stable")
        scores = {self.labels[i]: float(values[i]) for i in order}
        return Classification(self.labels[order[0]], float(values[order[0]]), scores, truncated)

    def _activated(self, logits: np.ndarray) -> np.ndarray:
        problem = self.config.get("problem_type")
        if problem == "regression":
            return logits.astype(np.float64)
        return sigmoid(logits) if problem == "multi_label_classification" or len(logits) == 1 else softmax(logits)


class CrossEncoder(SequenceClassifier):
    """A classifier with one output, which scores pairs of texts: how well a document answers a query."""

    def score(self, pairs: Sequence[tuple[str, str]], *, truncate: bool = True) -> Float32:
        """One score a pair: (n,) float32, a probability unless the model's config names another activation."""
        firsts, seconds = [a for a, _ in pairs], [b for _, b in pairs]
        outputs, _ = self._outputs(firsts, seconds, truncate)
        return np.array([self._activated(logits)[0] for logits in outputs], np.float32)

    def rerank(self, query: str, documents: Sequence[str], *, top_k: int | None = None, truncate: bool = True) -> list[Ranked]:
        """The documents by their score for the query, best first; equal scores keep their order.

        Parameters
        ----------
        query : str
        documents : list of str
        top_k : int, optional
            How many to return; all by default.
        truncate : bool
            Cut longer pairs to the limit; False raises instead.
        """
        if not isinstance(query, str):
            raise OptionError(f"the query is {query!r:.80}: text is wanted")
        documents = as_batch(documents, "documents")
        scores = self.score([(query, document) for document in documents], truncate=truncate)
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [Ranked(int(i), float(scores[i]), documents[i]) for i in order]

    def _activated(self, logits: np.ndarray) -> np.ndarray:
        about = self.config.get("sentence_transformers") or {}
        name = about.get("activation_fn") or self.config.get("sbert_ce_default_activation_function") or "Sigmoid"
        return logits.astype(np.float64) if name.endswith("Identity") else sigmoid(logits)
