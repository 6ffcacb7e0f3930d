"""How one request chooses its tokens, and the state of each of its continuations."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral

import numpy as np

from cygnet._core._processors import History, Processors, force, keep_only
from cygnet._core._rows import top_logprobs
from cygnet._core._sampling import Sampler
from cygnet.errors import DecodingError, OptionError
from cygnet.generation.options import GenerationOptions
from cygnet.generation.result import Delta, Generation, TokenLogprob, Usage
from cygnet.generation.stopping import TextTracker


class TokenPolicy:
    """Processors, filters and random numbers of one request, shared by its samples.

    Parameters
    ----------
    options : GenerationOptions
    prompt_length : int
        Decoder prompt with forced prefix.
    limit : int
        New tokens at most.
    """

    def __init__(self, options: GenerationOptions, prompt_length: int, limit: int):
        self.options = options
        self.limit = limit
        self.end_ids = frozenset(options.end_ids)
        self.stop_ids = frozenset(options.stop_token_ids)
        self.processors = processors_of(options, prompt_length)
        self.sampler = Sampler(*options.filters)
        self.seed = int.from_bytes(os.urandom(8), "little") if options.sampling and options.seed is None else options.seed
        self.forced_first = None if options.prefix_ids else options.forced_bos
        # A grammar has the last word on every token, so that nothing is forced beside it.
        self.forced_last = () if options.constraint else options.forced_eos
        self.needs_history = self.processors.active or options.allowed_tokens is not None
        self.rewrites = self.needs_history or self.forced_first is not None or bool(self.forced_last) or options.constraint is not None

    def choose(self, row: np.ndarray, continuation: Continuation) -> tuple[int, TokenLogprob | None]:
        """The next token of a continuation, and its log-probability if asked for.

        Parameters
        ----------
        row : (V,) float32
            Raw logits; overwritten.
        """
        wanted = self.options.logprobs
        raw = row.copy() if wanted is not None and self.rewrites else row
        position = continuation.generated
        if self.rewrites:
            self.rewrite(row, continuation, position)
        token = self.sampler.choose(row, self.seed or 0, continuation.index, position)
        if token < 0:
            raise DecodingError(f"no token can follow at new token {position + 1}: every one is barred, or the model's logits are not numbers")
        if wanted is None:
            return token, None
        value, top = top_logprobs(raw, token, wanted)
        return token, TokenLogprob(token, value, tuple(top))

    def rewrite(self, row: np.ndarray, continuation: Continuation, position: int) -> None:
        """Applies everything that comes before temperature."""
        if self.processors.active:
            self.processors.apply(row, continuation.history)
        apply_forcing(row, self, position, continuation.history)
        if continuation.constraint is not None:
            continuation.constraint.mask(row)


def processors_of(options: GenerationOptions, prompt_length: int) -> Processors:
    """The compiled processors of a request."""
    end_ids = (*options.end_ids, *options.stop_token_ids)
    # Barring the only end token would leave a model that can never end by itself; min_new_tokens is the option for that.
    bad_words = [word for word in options.bad_words if word not in {(token,) for token in options.end_ids}]
    return Processors(
        bias=options.logit_bias,
        repetition_penalty=options.repetition_penalty,
        presence_penalty=options.presence_penalty,
        frequency_penalty=options.frequency_penalty,
        no_repeat_ngram_size=options.no_repeat_ngram_size,
        bad_words=bad_words,
        min_new_tokens=options.minimum(prompt_length),
        end_ids=end_ids,
        suppress=options.suppress_tokens,
        begin_suppress=options.begin_suppress_tokens,
    )


def apply_forcing(row: np.ndarray, policy: TokenPolicy, position: int, history: History | None) -> None:
    """Keeps only what allowed_tokens names; then forced tokens: log-probability 0 for them, none for the others."""
    if policy.options.allowed_tokens is not None:
        allowed = policy.options.allowed_tokens(history.ids())
        ids = list(allowed) if isinstance(allowed, Iterable) else []
        if not ids or not all(isinstance(token, Integral) and 0 <= token < len(row) for token in ids):
            raise OptionError(f"allowed_tokens must give at least one id from 0 to {len(row) - 1}, not {allowed!r}")
        keep_only(row, ids)
    if position == 0 and policy.forced_first is not None:
        force(row, (policy.forced_first,))
    if position == policy.limit - 1 and policy.forced_last:
        force(row, policy.forced_last)


class Continuation:
    """One growing answer: its sequence in the engine, ids, text, and why it ended.

    Parameters
    ----------
    index : int
        Which sample of its request.
    sequence : Sequence
    policy : TokenPolicy
    prompt_ids : list of int
        Decoder prompt with forced prefix.
    tracker : TextTracker
    """

    def __init__(self, index, sequence, policy: TokenPolicy, prompt_ids: list[int], tracker: TextTracker):
        self.index = index
        self.sequence = sequence
        self.policy = policy
        self.tracker = tracker
        self.ids: list[int] = []
        self.history = History(prompt_ids) if policy.needs_history else None
        self.constraint = policy.options.constraint.start() if policy.options.constraint else None
        self.logprobs: list[TokenLogprob] | None = None if policy.options.logprobs is None else []
        self.finish_reason: str | None = None
        self.stop: str | int | None = None

    @property
    def generated(self) -> int:
        return len(self.ids)

    def extend(self, row: np.ndarray) -> Delta:
        """Chooses the next token from its logits and takes it in."""
        token, logprob = self.policy.choose(row, self)
        self.ids.append(token)
        if logprob is not None:
            self.logprobs.append(logprob)
        text = self._read(token)
        if self.finish_reason is not None:
            text += self._finish_text()
        return Delta(self.index, token, text, logprob, self.finish_reason)

    def _read(self, token: int) -> str:
        """Updates text and state; sets the finish reason."""
        policy = self.policy
        if token in policy.end_ids or token in policy.stop_ids:
            forced = len(self.ids) == policy.limit and token in policy.forced_last
            self.finish_reason = "length" if forced else "stop"
            self.stop = None if token in policy.end_ids else token
            return ""
        if self.history is not None:
            self.history.append(token)
        text = self.tracker.push(token)
        if self.constraint is not None:
            self.constraint.accept(token)
        if self.tracker.found is not None or (self.constraint is not None and self.constraint.finished):
            self.finish_reason = "stop"
        elif policy.options.stop_when is not None and policy.options.stop_when(self.ids, self.tracker.text):
            self.finish_reason = "stop"
        elif len(self.ids) == policy.limit:
            self.finish_reason = "length"
        return text

    def _finish_text(self) -> str:
        rest = self.tracker.finish()
        if self.tracker.found is not None:
            self.finish_reason, self.stop = "stop", self.tracker.found
        return rest

    def close(self, reason: str) -> str:
        """Ends it from outside, as when cancelled; returns the text held back."""
        self.finish_reason = reason
        return self._finish_text()

    def result(self, usage: Usage) -> Generation:
        options = self.policy.options
        return Generation(
            ids=[*options.prefix_ids, *self.ids],
            text=self.tracker.text,
            finish_reason=self.finish_reason,
            usage=usage,
            logprobs=self.logprobs,
            seed=self.policy.seed if options.sampling else None,
            stop=self.stop,
            index=self.index,
        )
