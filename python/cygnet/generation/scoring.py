"""Teacher-forced log-probabilities and perplexity; runs in the scheduler beside whatever else is running.

The value of a token is log_softmax of the model's raw logits at the position before it. A text longer than the context is read in windows that
start `stride` tokens apart: each window gives values only for the tokens that no earlier one gave, so that every token but the first is scored
once, with at least window - stride tokens before it wherever the text has as many. A smaller stride is slower and closer to unlimited context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from cygnet._core._rows import gather_logprobs
from cygnet.errors import ContextOverflow, NumericError, OptionError
from cygnet.generation.engine_protocol import Engine, Source
from cygnet.generation.engine_protocol import Sequence as EngineSequence
from cygnet.generation.prefix_cache import PrefixCache
from cygnet.generation.scheduler import Scheduler
from cygnet.generation.tasks import ALL, NONE, Feed

# Rows of logits held at a time: each is a whole vocabulary wide.
_SCORED_CHUNK = 64


@dataclass(frozen=True)
class Score:
    """Log-probabilities of the tokens of one text.

    Attributes
    ----------
    ids : list of int
        The tokens that have a value.
    logprobs : (n,) float64
        Natural logarithms.
    """

    ids: list[int]
    logprobs: np.ndarray

    @property
    def total(self) -> float:
        """Log-probability of the whole text."""
        return float(self.logprobs.sum())

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-probability of a token; NaN if none has a value."""
        return exp(-self.logprobs.mean()) if len(self.logprobs) else float("nan")


class ScoreTask:
    """See Task. Reads one window and keeps the log-probabilities of its last tokens.

    Parameters
    ----------
    ids : list of int
        What the decoder reads.
    targets : list of int
        What follows each of the last len(targets) ids.
    source_ids : list of int or None
    """

    def __init__(self, ids: list[int], targets: list[int], source_ids: Sequence[int] | None = None):
        self._ids = ids
        self._targets = np.array(targets, np.int64)
        self._first = len(ids) - len(targets)  # position of the first row that is wanted
        self._logprobs = np.empty(len(targets))
        self._sequence: EngineSequence | None = None
        self._read = 0
        self._planned = 0
        self._cancelled = False
        self.source_ids = source_ids

    @property
    def finished(self) -> bool:
        return self._cancelled or self._read == len(self._ids)

    @property
    def reading(self) -> bool:
        return True

    def begin(self, engine: Engine, cache: PrefixCache, source: Source | None) -> None:
        if source is None:
            # Rows from `first` on are wanted, so that only what comes before them may be taken from the cache.
            self._sequence, self._read = cache.lookup(self._ids[: self._first + 1], len(self._ids))
        if self._sequence is None:
            self._sequence = engine.sequence(source)

    def plan(self, budget: int) -> list[Feed]:
        wanted = self._read >= self._first
        end = min(self._read + min(budget, _SCORED_CHUNK), len(self._ids)) if wanted else min(self._read + budget, self._first)
        self._planned = end - self._read
        self._sequence.announce(len(self._ids))
        return [Feed(self._sequence, self._ids[self._read : end], ALL if wanted else NONE)] if self._planned else []

    def advance(self, rows: np.ndarray) -> None:
        if len(rows):
            part = slice(self._read - self._first, self._read - self._first + len(rows))
            gather_logprobs(rows, self._targets[part], self._logprobs[part])
            if np.isnan(self._logprobs[part]).any():
                raise NumericError("the model's logits are not numbers: its weights or settings are damaged")
        self._read += self._planned

    def blocks_wanted(self, engine: Engine) -> int:
        return engine.blocks_needed(self._sequence, len(self._ids) - self._read)

    def cancel(self) -> None:
        self._cancelled = True

    def close(self) -> None:
        if self._sequence is not None:
            self._sequence.release()
            self._sequence = None

    def results(self) -> list[np.ndarray]:
        return [self._logprobs[: max(0, self._read - self._first)]]


def score(scheduler: Scheduler, texts: Sequence[Sequence[int]], *, window: int | None = None, stride: int | None = None) -> list[Score]:
    """Log-probability of each token after the first, given those before it.

    Parameters
    ----------
    scheduler : Scheduler
    texts : list of list of int
    window : int or None
        Tokens read at once; the model's context by default.
    stride : int or None
        Tokens between the starts of windows, for texts longer than one; None refuses such texts.

    Returns
    -------
    list of Score
        Its ids are those of the text without the first.

    Raises
    ------
    ContextOverflow
        For a text longer than the window if no stride is given.
    OptionError
        For a stride that is not from 1 to window - 1.
    """
    limit = scheduler.engine.max_context
    if window is not None and (window < 2 or (limit is not None and window > limit)):
        raise OptionError(f"window must be from 2 to the context of {limit} tokens, not {window}")
    window = window or limit
    if stride is not None and (stride < 1 or (window is not None and stride >= window)):
        raise OptionError(f"stride must be from 1 to window - 1 = {'any' if window is None else window - 1}, not {stride}")
    tasks: list[list[ScoreTask]] = []
    for ids in texts:
        if window is not None and len(ids) > window and stride is None:
            raise ContextOverflow(f"the text has {len(ids)} tokens, the window {window}: give a stride to score it in several windows")
        tasks.append([ScoreTask(list(ids[start:end]), list(ids[first : end + 1])) for start, end, first in _windows(len(ids), window, stride)])
    values = _run(scheduler, [task for own in tasks for task in own])
    return [Score(list(ids[1:]), np.concatenate([np.empty(0), *(next(values) for _ in own)])) for ids, own in zip(texts, tasks, strict=True)]


def score_pairs(scheduler: Scheduler, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], start: Sequence[int]) -> list[Score]:
    """Log-probability of each target token given the source and the target tokens before it.

    Parameters
    ----------
    scheduler : Scheduler
    sources, targets : list of list of int
        A target usually ends with the end token.
    start : list of int
        What the decoder reads first: decoder_start_token_id.
    """
    limit = scheduler.engine.max_context
    tasks = []
    for source, target in zip(sources, targets, strict=True):
        read = [*start, *target[:-1]]
        if limit is not None and len(read) > limit:
            raise ContextOverflow(f"the target has {len(target)} tokens; the context holds {limit}")
        if target:
            tasks.append(ScoreTask(read, list(target), source))
    values = _run(scheduler, tasks)
    return [Score(list(target), next(values) if target else np.empty(0)) for target in targets]


def _windows(length: int, window: int | None, stride: int | None):
    """(start, end, first) of each window: it reads ids[start:end] and scores ids[first:end + 1]."""
    start, first = 0, 1
    while first < length:
        # The last token is never read, only predicted; a window therefore predicts one token beyond its end.
        end = length - 1 if window is None else min(start + window, length - 1)
        yield start, end, first
        first = end + 1
        start += stride or 0


def _run(scheduler: Scheduler, tasks: list[ScoreTask]):
    """The values of each task, in order."""
    handles = [scheduler.submit_task(task) for task in tasks]
    try:
        yield from [handle.result()[0] for handle in handles]
    finally:
        for handle in handles:
            handle.cancel()
