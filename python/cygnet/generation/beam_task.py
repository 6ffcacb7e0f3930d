"""A request answered by beam search: beams are forks of one sequence, and reordering them moves no key or value."""

from __future__ import annotations

import numpy as np

from cygnet._core._processors import History
from cygnet._core._rows import log_softmax_row, top_logprobs
from cygnet.errors import DecodingError
from cygnet.generation.beam import BeamSearch, Hypothesis, penalize_repeats
from cygnet.generation.engine_protocol import Engine, Sequence, Source
from cygnet.generation.prefix_cache import PrefixCache
from cygnet.generation.result import Delta, Generation, TokenLogprob, Usage
from cygnet.generation.sampling import TokenPolicy, apply_forcing
from cygnet.generation.tasks import LAST, Emit, Feed, Prompt, Request, blocks_for, ignore


class BeamTask:
    """See Task. Nothing is certain before the search ends, so that a stream gives each result's text at once.

    Parameters
    ----------
    request : Request
    max_context : int or None
    emit : function of Delta
    """

    def __init__(self, request: Request, max_context: int | None, emit: Emit = ignore):
        options = request.options
        self._request = request
        self._emit = emit
        self._prompt = Prompt(request.decoder_ids)
        self.source_ids = request.source_ids
        self._policy = TokenPolicy(options, len(self._prompt.ids), options.limit(len(self._prompt.ids), max_context))
        self._history = History(self._prompt.ids) if self._policy.needs_history else None
        end_ids = self._policy.end_ids | self._policy.stop_ids
        size = options.num_beams // options.num_beam_groups
        self._groups = [
            BeamSearch(size, end_ids, self._policy.limit, options.length_penalty, options.early_stopping) for _ in range(options.num_beam_groups)
        ]
        self._sequences: list[list[Sequence]] = []  # of the running beams of each group
        self._cancelled = False
        self._results: list[Generation] | None = None
        if self._policy.limit == 0:
            self._finish()

    @property
    def finished(self) -> bool:
        return self._results is not None

    @property
    def reading(self) -> bool:
        return not self._prompt.done

    @property
    def read(self) -> int:
        return self._prompt.read

    def begin(self, engine: Engine, cache: PrefixCache, source: Source | None) -> None:
        self._prompt.begin(engine, cache, source)

    def plan(self, budget: int) -> list[Feed]:
        if self.reading:
            return self._prompt.plan(budget)
        pairs = [pair for group, own in zip(self._groups, self._sequences, strict=True) for pair in zip(group.running, own, strict=True)]
        return [Feed(sequence, [beam.ids[-1]], LAST) for beam, sequence in pairs]

    def advance(self, rows: np.ndarray) -> None:
        if self.reading:
            self._prompt.advance()
            if self.reading:
                return
            self._sequences = [[self._prompt.sequence.fork()] for _ in self._groups]
            rows = np.repeat(rows, len(self._groups), axis=0)
            self._prompt.release()
        first, chosen = 0, []
        for number, group in enumerate(self._groups):
            count = len(group.running)
            if count:
                penalty = self._request.options.diversity_penalty
                chosen += self._advance_group(number, rows[first : first + count], chosen, penalty)
            first += count
        if all(group.done for group in self._groups):
            self._finish()

    def _advance_group(self, number: int, rows: np.ndarray, chosen: list[int], penalty: float) -> list[int]:
        """One step of one group; returns the tokens that it has chosen."""
        group = self._groups[number]
        for row in rows:
            log_softmax_row(row)
        wanted = self._request.options.logprobs
        raw = rows.copy() if wanted is not None else rows
        if penalty:
            penalize_repeats(rows, chosen, penalty)
        if self._policy.rewrites:
            for row, beam in zip(rows, group.running, strict=True):
                self._rewrite(row, beam)

        def trail(beam, token):
            """A chain of log-probabilities from the last token to the first."""
            if wanted is None:
                return None
            value, top = top_logprobs(raw[beam], token, wanted)
            return TokenLogprob(token, value, tuple(top)), group.running[beam].trail

        length = len(group.running[0].ids) + 1
        parents = group.advance(rows, trail)
        self._sequences[number] = _reordered(self._sequences[number], parents)
        # At the last step nothing runs on, and what fills the length counts as chosen.
        return [beam.ids[-1] for beam in group.running or group.finished if len(beam.ids) == length]

    def _rewrite(self, row: np.ndarray, beam: Hypothesis) -> None:
        history = None
        if self._history is not None:
            history = self._history.fork()
            for token in beam.ids:
                history.append(token)
        if self._policy.processors.active:
            self._policy.processors.apply(row, history)
        apply_forcing(row, self._policy, len(beam.ids), history)

    def _finish(self) -> None:
        """Makes the results: the best finished beams of all groups; where cancelled before any finished, the best running one."""
        beams = sorted((beam for group in self._groups for beam in group.finished), key=lambda beam: -beam.score)
        beams = beams or sorted((beam for group in self._groups for beam in group.running), key=lambda beam: -beam.total)[:1]
        if not beams:
            raise DecodingError("beam search found no token that can follow: every one is barred, or the model's logits are not numbers")
        count = self._request.options.num_return_sequences
        self._results = [self._generation(index, beam) for index, beam in enumerate(beams[:count])]
        for result in self._results:
            self._emit(Delta(result.index, None, result.text, None, result.finish_reason))

    def _generation(self, index: int, beam: Hypothesis) -> Generation:
        options, ids = self._request.options, list(beam.ids)
        ended = bool(ids) and (ids[-1] in self._policy.end_ids or ids[-1] in self._policy.stop_ids)
        forced = len(ids) == self._policy.limit and ended and ids[-1] in self._policy.forced_last
        tracker = self._request.tracker()
        tracker.prefix(options.prefix_ids)
        for token in ids[:-1] if ended else ids:
            if tracker.found is None:
                tracker.push(token)
        tracker.finish()
        reason = "stop" if tracker.found or (ended and not forced) else "length"
        return Generation(
            ids=[*options.prefix_ids, *ids],
            text=tracker.text,
            finish_reason="cancelled" if self._cancelled else reason,
            usage=Usage(self._request.prompt_tokens, len(ids), self._prompt.cached),
            logprobs=None if options.logprobs is None else _unrolled(beam.trail),
            score=beam.score,
            stop=tracker.found or (ids[-1] if ended and ids[-1] in self._policy.stop_ids else None),
            index=index,
        )

    def blocks_wanted(self, engine: Engine) -> int:
        beams = self._request.options.num_beams
        if not self.reading:
            left = self._policy.limit - max(len(beam.ids) for group in self._groups for beam in (*group.running, Hypothesis((), 0.0)))
            return beams * blocks_for(engine, left)
        return engine.blocks_needed(self._prompt.sequence, self._prompt.left) + beams * blocks_for(engine, self._policy.limit)

    def cancel(self) -> None:
        if not self.finished:
            self._cancelled = True
            self._finish()

    def close(self) -> None:
        self._prompt.release()
        for own in self._sequences:
            for sequence in own:
                sequence.release()
        self._sequences = []

    def results(self) -> list[Generation]:
        return self._results


def _reordered(sequences: list[Sequence], parents: list[int]) -> list[Sequence]:
    """Sequences of the next beams: the first that continues a sequence takes it over, further ones fork it, the rest is released."""
    taken: set[int] = set()
    result = []
    for parent in parents:
        result.append(sequences[parent].fork() if parent in taken else sequences[parent])
        taken.add(parent)
    for parent, sequence in enumerate(sequences):
        if parent not in taken:
            sequence.release()
    return result


def _unrolled(trail) -> list[TokenLogprob]:
    found = []
    while trail is not None:
        entry, trail = trail
        found.append(entry)
    return found[::-1]
