"""A request answered by greedy decoding or sampling: one prompt, one or several continuations that share its memory."""

from __future__ import annotations

import numpy as np

from cygnet.generation.engine_protocol import Engine, Source
from cygnet.generation.prefix_cache import PrefixCache
from cygnet.generation.result import Delta, Generation, Usage
from cygnet.generation.sampling import Continuation, TokenPolicy
from cygnet.generation.speculation import Speculator, no_speculation
from cygnet.generation.tasks import ALL, LAST, Emit, Feed, Prompt, Request, blocks_for, ignore


class SamplingTask:
    """See Task.

    Parameters
    ----------
    request : Request
    max_context : int or None
    emit : function of Delta
        Called for every token.
    speculate : function of GenerationOptions and list of int -> Speculator
        Makes the draft source of each sample.
    """

    def __init__(self, request: Request, max_context: int | None, emit: Emit = ignore, speculate=no_speculation):
        self._request = request
        self._emit = emit
        self._prompt = Prompt(request.decoder_ids)
        self.source_ids = request.source_ids
        self._policy = TokenPolicy(request.options, len(self._prompt.ids), request.options.limit(len(self._prompt.ids), max_context))
        self._continuations = [self._continuation(i) for i in range(request.options.num_return_sequences)]
        self._speculators: list[Speculator] = [speculate(request.options, self._prompt.ids) for _ in self._continuations]
        self._live: list[Continuation] = []
        self._planned: list[Feed] = []
        self._cache: PrefixCache | None = None
        if self._policy.limit == 0:
            for continuation in self._continuations:
                self._emit(Delta(continuation.index, None, continuation.close("length"), None, "length"))

    def _continuation(self, index: int) -> Continuation:
        tracker = self._request.tracker()
        text = tracker.prefix(self._request.options.prefix_ids)
        if text:
            self._emit(Delta(index, None, text))
        return Continuation(index, None, self._policy, self._prompt.ids, tracker)

    @property
    def finished(self) -> bool:
        return all(continuation.finish_reason for continuation in self._continuations)

    @property
    def reading(self) -> bool:
        return not self._prompt.done

    @property
    def read(self) -> int:
        return self._prompt.read

    def begin(self, engine: Engine, cache: PrefixCache, source: Source | None) -> None:
        self._prompt.begin(engine, cache, source)
        self._cache = cache if source is None else None

    def plan(self, budget: int) -> list[Feed]:
        if self.reading:
            return self._prompt.plan(budget)
        self._planned = [self._feed(continuation) for continuation in self._live]
        return self._planned

    def _feed(self, continuation: Continuation) -> Feed:
        last = continuation.ids[-1]
        # The limit counts chosen tokens, and every draft that is accepted is followed by one more.
        room = self._policy.limit - continuation.generated - 1
        drafts = self._speculators[continuation.index].propose(continuation, room) if room > 0 else ()
        return Feed(continuation.sequence, [last, *drafts], ALL if drafts else LAST)

    def advance(self, rows: np.ndarray) -> None:
        if self.reading:
            self._prompt.advance()
            if not self.reading:
                self._start(rows[0])
            return
        first = 0
        for continuation, feed in zip(self._live, self._planned, strict=True):
            count = len(feed.ids) if feed.rows == ALL else 1
            self._take(continuation, feed.ids[1:], rows[first : first + count])
            first += count
        self._live = [continuation for continuation in self._live if not continuation.finish_reason]

    def _start(self, row: np.ndarray) -> None:
        """The prompt is read: every continuation forks it and takes its first token from the same logits."""
        self._live = list(self._continuations)
        for continuation in self._live:
            continuation.sequence = self._prompt.sequence.fork()
            self._take(continuation, [], row[None] if continuation is self._live[-1] else row[None].copy())
        self._prompt.release()
        self._live = [continuation for continuation in self._live if not continuation.finish_reason]

    def _take(self, continuation: Continuation, drafts: list[int], rows: np.ndarray) -> None:
        """Chooses a token from each row in turn as long as the drafts before it were what the model itself chose."""
        fed = continuation.sequence.length
        accepted = 0
        for place, row in enumerate(rows):
            delta = continuation.extend(row)
            self._emit(delta)
            if delta.finish_reason or place == len(drafts) or delta.id != drafts[place]:
                break
            accepted += 1
        if drafts:
            continuation.sequence.truncate(fed - len(drafts) + accepted)
            self._speculators[continuation.index].learn(len(drafts), accepted)
        if continuation.finish_reason:
            self._retire(continuation)

    def _retire(self, continuation: Continuation) -> None:
        """Gives the memory of a finished continuation to the prefix cache."""
        ids = [*self._prompt.ids, *continuation.ids]
        if self._cache is not None and self._cache.alike(len(self._prompt.ids), len(ids)):
            self._cache.insert(continuation.sequence, ids)
        self._release(continuation)

    def _release(self, continuation: Continuation) -> None:
        self._speculators[continuation.index].close()
        if continuation.sequence is not None:
            continuation.sequence.release()
            continuation.sequence = None

    def blocks_wanted(self, engine: Engine) -> int:
        limit = self._policy.limit
        if not self.reading:
            return sum(engine.blocks_needed(c.sequence, limit - c.generated + 1) for c in self._live)
        # Further samples share the prompt and each own what follows.
        others = len(self._continuations) - 1
        return engine.blocks_needed(self._prompt.sequence, self._prompt.left + limit) + others * blocks_for(engine, limit)

    def cancel(self) -> None:
        for continuation in self._continuations:
            if not continuation.finish_reason:
                text = continuation.close("cancelled")
                self._emit(Delta(continuation.index, None, text, None, continuation.finish_reason))

    def close(self) -> None:
        self._prompt.release()
        for continuation in self._continuations:
            self._release(continuation)

    def results(self) -> list[Generation]:
        prompt_tokens, cached = self._request.prompt_tokens, self._prompt.cached
        return [c.result(Usage(prompt_tokens, c.generated, cached)) for c in self._continuations]
