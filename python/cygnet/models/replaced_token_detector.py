"""Replaced-token detection: which tokens of a text another model put there (Clark et al. 2020, ELECTRA)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, overload

from cygnet.errors import OptionError
from cygnet.models.base import as_batch, is_single
from cygnet.models.heads import HeadModel, sigmoid


class TokenScore(NamedTuple):
    """A token of a text and the probability that it was replaced."""

    text: str
    start: int
    end: int
    score: float


class ReplacedTokenDetector(HeadModel):
    """A Transformer with one logit a token."""

    @overload
    def detect(self, texts: str) -> list[TokenScore]: ...
    @overload
    def detect(self, texts: Iterable[str]) -> list[list[TokenScore]]: ...

    def detect(self, texts: str | Iterable[str]) -> Any:
        """The tokens of a text, or of each of several, with the probability that each was replaced.

        Raises
        ------
        ContextOverflow
            A text is longer than the model's positions.
        """
        batch = as_batch(texts)
        if not all(isinstance(text, str) for text in batch):
            raise OptionError("detect needs texts: scores belong to stretches of them")
        encodings = self.tokenizer.encode_batch(batch)
        for index, encoding in enumerate(encodings):
            self.check_length(len(encoding.ids), f"text {index}")
        outputs = self.logits([encoding.ids for encoding in encodings])
        results = [_scores(text, encoding, logits[:, 0]) for text, encoding, logits in zip(batch, encodings, outputs, strict=True)]
        return results[0] if is_single(texts) else results


def _scores(text: str, encoding, logits) -> list[TokenScore]:
    probabilities = sigmoid(logits)
    places = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    return [TokenScore(text[a:b], a, b, float(probabilities[i])) for i in places for a, b in [encoding.offsets[i]]]
