"""What a generation gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class TokenLogprob(NamedTuple):
    """Natural-log probability of a generated token under the model's raw logits, before any processor or temperature."""

    id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()  # the most likely ids with their values, best first
    token: str | None = None  # as the vocabulary spells it; None in a stream's deltas and without a tokenizer
    top_tokens: tuple[str | None, ...] = ()  # the same of each entry of `top`


class Usage(NamedTuple):
    """Token counts; `cached_tokens` of the prompt were not computed again."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens


class Delta(NamedTuple):
    """One step of a stream: a token of sample `index` and the text that is now certain to stay."""

    index: int
    id: int | None  # None for text that was held back until the end
    text: str
    logprob: TokenLogprob | None = None
    finish_reason: str | None = None  # set on the last delta of a sample


@dataclass(frozen=True)
class Generation:
    """One finished continuation.

    Attributes
    ----------
    ids : list of int
        Forced prefix and new tokens. An end token is in it, as the last; a stop id or stop string's tokens too.
    text : str
        Their text without end token, stop id or stop string; empty if no decoder was given.
    finish_reason : str
        "stop" for an end token, stop id, stop string or stop function; "length"; "cancelled".
    usage : Usage
        `prompt_tokens` are those of the source for an encoder-decoder model.
    logprobs : list of TokenLogprob or None
        One for each new token, if asked for.
    score : float or None
        Of a beam: sum of log-probabilities / new tokens ** length_penalty.
    seed : int or None
        What reproduces a sampled continuation.
    stop : str, int or None
        The stop string or id that ended it.
    index : int
        Which of several samples of one prompt.
    truncated_tokens : int
        Prompt tokens that were cut off because the caller asked for that rather than an error.
    """

    ids: list[int]
    text: str
    finish_reason: str
    usage: Usage
    logprobs: list[TokenLogprob] | None = None
    score: float | None = None
    seed: int | None = None
    stop: str | int | None = None
    index: int = 0
    truncated_tokens: int = 0
