"""Speculation: guesses of the next tokens, checked by one forward pass. Exact, because the checker chooses every token itself.

At each position the token is drawn from the model's own distribution with the very random number that plain decoding uses there; a draft
only spares the pass in which it would have been fed. Hence the ids, greedy or sampled, are those of decoding without drafts.
Prompt lookup: Saxena, "Prompt Lookup Decoding" (2023). Draft models: Leviathan et al., "Fast Inference from Transformers via Speculative
Decoding" (2023), with a shared random number in place of rejection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cygnet.errors import CacheFull, OptionError
from cygnet.generation.engine_protocol import Engine
from cygnet.generation.options import GenerationOptions
from cygnet.generation.sampling import Continuation


class Speculator(Protocol):
    """The draft source of one continuation."""

    def propose(self, continuation: Continuation, room: int) -> list[int]:
        """At most `room` ids that may come next; often none."""

    def learn(self, proposed: int, accepted: int) -> None:
        """How the last proposal fared."""

    def close(self) -> None:
        """Gives back what it holds; may be called more than once."""


class Silent:
    """Proposes nothing."""

    def propose(self, continuation: Continuation, room: int) -> list[int]:
        return []

    def learn(self, proposed: int, accepted: int) -> None:
        """There is nothing to learn."""

    def close(self) -> None:
        """There is nothing to give back."""


_SILENT = Silent()


def no_speculation(options: GenerationOptions, prompt_ids: list[int]) -> Speculator:
    """What a request gets that asks for none."""
    return _SILENT


def speculator_factory(draft: Engine | None) -> Callable[[GenerationOptions, list[int]], Speculator]:
    """What makes the draft source a request asks for.

    Parameters
    ----------
    draft : Engine or None
        The draft model, if there is one.
    """

    def make(options, prompt_ids):
        if options.speculation == "prompt-lookup":
            return PromptLookup(prompt_ids, options.draft_tokens)
        if options.speculation == "draft-model":
            if draft is None:
                raise OptionError("speculation='draft-model' needs a draft model: load the model with draft=SOURCE")
            return DraftModel(draft, prompt_ids, options.draft_tokens)
        return _SILENT

    return make


# Tokens that a draft model reads of a prompt in one step.
_READ_AHEAD = 128


class _Width:
    """How many drafts to make: two more after a full success, one less after a failure, as a cheap guess at what pays."""

    def __init__(self, most: int):
        self._most = most
        self.drafts = min(4, most)

    def learn(self, proposed: int, accepted: int) -> None:
        step = 2 if accepted == proposed else -1
        self.drafts = max(1, min(self._most, self.drafts + step))


class PromptLookup:
    """Proposes what followed the most recent earlier occurrence of the last few tokens, in prompt or answer.

    Parameters
    ----------
    prompt_ids : list of int
    most : int
        Drafts at most.
    longest, shortest : int
        Lengths of the token runs that are looked up, longest first.
    """

    def __init__(self, prompt_ids: list[int], most: int, longest: int = 4, shortest: int = 2):
        self._ids = list(prompt_ids)
        self._prompt_length = len(self._ids)
        self._width = _Width(most)
        self._lengths = range(longest, shortest - 1, -1)
        # Where the tokens after a run start, by run; the run at the very end is entered once something follows it.
        self._places: dict[tuple[int, ...], int] = {}
        for end in range(1, len(self._ids)):
            self._enter(end)

    def propose(self, continuation: Continuation, room: int) -> list[int]:
        ids = self._ids
        for token in continuation.ids[len(ids) - self._prompt_length :]:
            self._enter(len(ids))
            ids.append(token)
        count = min(room, self._width.drafts)
        for length in self._lengths:
            place = self._places.get(tuple(ids[-length:])) if length <= len(ids) else None
            if place is not None:
                return ids[place : place + count]
        return []

    def learn(self, proposed: int, accepted: int) -> None:
        self._width.learn(proposed, accepted)

    def close(self) -> None:
        """There is nothing to give back."""

    def _enter(self, end: int) -> None:
        """Notes that the runs which end before `end` are followed by what is there."""
        for length in self._lengths:
            if length <= end:
                self._places[tuple(self._ids[end - length : end])] = end


class DraftModel:
    """Proposes what a smaller model with the same vocabulary would choose, with the random numbers of the request.

    Parameters
    ----------
    engine : Engine
        The smaller model.
    prompt_ids : list of int
    most : int
        Drafts at most.
    """

    def __init__(self, engine: Engine, prompt_ids: list[int], most: int):
        self._engine = engine
        self._prompt_ids = prompt_ids
        self._width = _Width(most)
        self._sequence = None

    def propose(self, continuation: Continuation, room: int) -> list[int]:
        ids = [*self._prompt_ids, *continuation.ids]
        count = min(room, self._width.drafts)
        if self._engine.max_context is not None:
            count = min(count, self._engine.max_context - len(ids))
        if count < 1:
            return []
        if self._sequence is None:
            self._sequence = self._engine.sequence()
        try:
            return self._draft(continuation, ids, count)
        except CacheFull:
            return []
        finally:
            # The drafts may be refused: the next proposal reads on from the end of what is certain.
            self._sequence.truncate(min(self._sequence.length, len(ids)))

    def _draft(self, continuation: Continuation, ids: list[int], count: int) -> list[int]:
        policy, drafts, unread = continuation.policy, [], ids[self._sequence.length :]
        if len(unread) > _READ_AHEAD:
            # A long prompt is read over several steps, because others wait for their next token meanwhile.
            self._engine.forward([(self._sequence, unread[:_READ_AHEAD])], rows="none")
            return []
        while len(drafts) < count:
            row = self._engine.forward([(self._sequence, unread)])[0]
            token = policy.sampler.choose(row, policy.seed or 0, continuation.index, continuation.generated + len(drafts))
            if token < 0:
                break
            drafts.append(token)
            unread = [token]
        return drafts

    def learn(self, proposed: int, accepted: int) -> None:
        self._width.learn(proposed, accepted)

    def close(self) -> None:
        if self._sequence is not None:
            self._sequence.release()
            self._sequence = None
