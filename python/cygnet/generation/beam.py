"""Beam search over log-probabilities, as transformers 5 defines it; knows no engine and no text.

Scores are sums of log-probabilities. Each step takes the K = max(2, 1 + end ids) * num_beams best continuations. One is done if it is an end id
or fills the length. The done ones among the first num_beams of the K become finished hypotheses, scored sum / length ** length_penalty, of
which the num_beams best are kept; the num_beams best that are not done run on. The prompt counts for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cygnet._core._beam import best_continuations


@dataclass(frozen=True)
class Hypothesis:
    """A beam: its new ids, the sum of their log-probabilities, and its score once finished."""

    ids: tuple[int, ...]
    total: float
    score: float | None = None
    trail: Any = None  # what the caller keeps of each beam; see BeamSearch.advance


class BeamSearch:
    """One group of beams of one prompt.

    Parameters
    ----------
    num_beams : int
    end_ids : collection of int
    limit : int
        New tokens at most.
    length_penalty : float
    early_stopping : bool or "never"
        False stops when the best running beam could not enter the finished ones at its present length; True as soon as num_beams are finished;
        "never" when it could not at any length.
    """

    def __init__(self, num_beams: int, end_ids, limit: int, length_penalty: float = 1.0, early_stopping: bool | str = False):
        self._size = num_beams
        self._end_ids = frozenset(end_ids)
        self._keep = max(2, 1 + len(self._end_ids)) * num_beams
        self._limit = limit
        self._penalty = length_penalty
        self._early = early_stopping
        self.running: list[Hypothesis] = [Hypothesis((), 0.0)]
        self.finished: list[Hypothesis] = []  # best first

    @property
    def done(self) -> bool:
        return not self.running

    def advance(self, logprobs: np.ndarray, trail=lambda beam, token: None) -> list[int]:
        """One step of all running beams.

        Parameters
        ----------
        logprobs : (B, V) float32
            A row for each of `running`.
        trail : function of beam index and token
            Makes what the continuation remembers.

        Returns
        -------
        list of int
            For each beam of the new `running`, which old one it continues.
        """
        scores = np.array([beam.total for beam in self.running])
        length = len(self.running[0].ids) + 1
        candidates = best_continuations(logprobs, scores, self._keep)
        done = [length == self._limit or token in self._end_ids for _, _, token in candidates]
        if not (self._early is True and len(self.finished) == self._size):
            closed = [c for c, ended in list(zip(candidates, done, strict=True))[: self._size] if ended]
            scored = [self._grow(c, trail, c[0] / length**self._penalty) for c in closed]
            self.finished = sorted(self.finished + scored, key=lambda beam: -beam.score)[: self._size]
        open_ = [c for c, ended in zip(candidates, done, strict=True) if not ended][: self._size]
        self.running = [self._grow(c, trail) for c in open_]
        if self.running and self._decided(length):
            self.running = []
            return []
        return [beam for _, beam, _ in open_]

    def _grow(self, candidate: tuple[float, int, int], trail, score: float | None = None) -> Hypothesis:
        total, beam, token = candidate
        return Hypothesis((*self.running[beam].ids, token), total, score, trail(beam, token))

    def _decided(self, length: int) -> bool:
        """Whether no running beam can become one of the finished."""
        if len(self.finished) < self._size:
            return False
        if self._early is True:
            return True
        reach = self._limit if self._early == "never" and self._penalty > 0 else length
        return self.running[0].total / reach**self._penalty <= self.finished[-1].score


def penalize_repeats(logprobs: np.ndarray, tokens: list[int], penalty: float) -> None:
    """Takes `penalty` from a token for each time an earlier group chose it in this step (Vijayakumar et al., "Diverse Beam Search", 2016).

    Parameters
    ----------
    logprobs : (B, V) float32
        Changed in place.
    tokens : list of int
    penalty : float
    """
    for token in tokens:
        logprobs[:, token] -= penalty
