"""GenerationOptions: everything that says how a continuation is chosen, checked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from cygnet.errors import OptionError
from cygnet.generation import option_checks as check

if TYPE_CHECKING:
    from cygnet.generation.constraints import Constraint

# New tokens when neither max_new_tokens nor max_length says otherwise.
DEFAULT_NEW_TOKENS = 256

# Any of these asks for sampling when temperature and do_sample are left out.
SAMPLING_FILTERS = ("top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")

# What an answer must look like; at most one of them.
STRUCTURES = ("json_schema", "regex", "grammar", "constraint")

ALIASES = {
    "n": "num_return_sequences",
    "eos_token_id": "eos_token_ids",
    "bad_words_ids": "bad_words",
    "forced_bos_token_id": "forced_bos",
    "forced_eos_token_id": "forced_eos",
    "sequence_bias": "logit_bias",
}

_CHECKS: dict[str, check.Check] = {
    "max_new_tokens": check.optional(check.integer(0)),
    "max_length": check.optional(check.integer(1)),
    "min_new_tokens": check.integer(0),
    "min_length": check.integer(0),
    "do_sample": check.optional(check.flag),
    "temperature": check.optional(check.number(0)),
    "top_k": check.optional(check.integer(0)),
    "top_p": check.optional(check.number(0, 1)),
    "min_p": check.optional(check.number(0, 1)),
    "typical_p": check.optional(check.number(0, 1, open_low=True)),
    "epsilon_cutoff": check.optional(check.number(0, 1, open_high=True)),
    "eta_cutoff": check.optional(check.number(0, 1, open_high=True)),
    "repetition_penalty": check.number(0, open_low=True),
    "presence_penalty": check.number(),
    "frequency_penalty": check.number(),
    "logit_bias": check.logit_bias,
    "bad_words": check.words,
    "no_repeat_ngram_size": check.integer(0),
    "suppress_tokens": check.token_ids,
    "begin_suppress_tokens": check.token_ids,
    "num_beams": check.integer(1),
    "num_beam_groups": check.integer(1),
    "diversity_penalty": check.number(0),
    "length_penalty": check.number(),
    "early_stopping": check.one_of(True, False, "never"),
    "num_return_sequences": check.integer(1),
    "seed": check.optional(check.integer(0, 2**64 - 1)),
    "stop": check.stop_strings,
    "stop_token_ids": check.token_ids,
    "stop_when": check.optional(check.function),
    "eos_token_ids": check.token_ids,
    "ignore_eos": check.flag,
    "forced_bos": check.optional(check.token_id),
    "forced_eos": check.token_ids,
    "prefix_ids": check.token_ids,
    "allowed_tokens": check.optional(check.function),
    "json_schema": check.optional(check.json_schema),
    "regex": check.optional(check.text),
    "grammar": check.optional(check.text),
    "constraint": check.optional(check.constraint),
    "logprobs": check.optional(check.integer(0)),
    "speculation": check.optional(check.one_of("prompt-lookup", "draft-model")),
    "draft_tokens": check.integer(1, 64),
}


@dataclass(frozen=True)
class GenerationOptions:
    """How continuations are chosen. Every value is checked and brought to one form here; nothing checks again later.

    Decoding is greedy unless temperature > 0, do_sample=True, or one of top_k, top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff is
    given; temperature=0 is greedy whatever else is given. docs/generation.md says what each option does and in which order they act.

    Raises
    ------
    OptionError
        For a value out of range, NaN, or options that contradict each other.

    Examples
    --------
    >>> GenerationOptions(temperature=0.7, top_p=0.9).sampling
    True
    """

    max_new_tokens: int | None = None
    max_length: int | None = None  # prompt and new tokens together; max_new_tokens wins
    min_new_tokens: int = 0
    min_length: int = 0  # prompt and new tokens together
    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    epsilon_cutoff: float | None = None
    eta_cutoff: float | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Any = ()
    bad_words: Any = ()
    no_repeat_ngram_size: int = 0
    suppress_tokens: Any = ()
    begin_suppress_tokens: Any = ()
    num_beams: int = 1
    num_beam_groups: int = 1
    diversity_penalty: float = 0.0
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    num_return_sequences: int = 1
    seed: int | None = None
    stop: Any = ()
    stop_token_ids: Any = ()
    stop_when: Callable[[Sequence[int], str], bool] | None = None  # of new ids and text so far
    eos_token_ids: Any = ()
    ignore_eos: bool = False
    forced_bos: int | None = None
    forced_eos: Any = ()
    prefix_ids: Any = ()
    allowed_tokens: Callable[[list[int]], Sequence[int]] | None = None  # of all ids so far, prompt included
    json_schema: Any = None  # a schema, True for any JSON; this, regex and grammar need a scheduler with a vocabulary
    regex: str | None = None
    grammar: str | None = None
    constraint: Constraint | None = None
    logprobs: int | None = None
    speculation: Literal["prompt-lookup", "draft-model"] | None = None
    draft_tokens: int = 8

    def __post_init__(self):
        for name, normal in _CHECKS.items():
            object.__setattr__(self, name, normal(name, getattr(self, name)))
        self._check_sampling()
        self._check_structure()
        self._check_beams()
        self._check_lengths()

    @classmethod
    def create(cls, defaults: Mapping[str, Any] | None = None, **given: Any) -> GenerationOptions:
        """Options from a model's defaults and a caller's own, which win.

        Parameters
        ----------
        defaults : mapping or None
            As config_defaults() makes it from generation_config.json.
        **given
            Fields of this class or their usual other names (`n`, `eos_token_id`, ...). An option given as None takes its default.

        Raises
        ------
        OptionError
            Also for an option that does not exist.

        Examples
        --------
        >>> GenerationOptions.create({"temperature": 0.6, "top_k": 20}, temperature=0).sampling
        False
        """
        own = _canonical(given)
        merged = {**_canonical(defaults or {}), **own}
        # A caller's way of choosing tokens replaces the model's: beams are not half-taken from one and sampling from the other.
        beams, sampling = own.get("num_beams", 1) > 1, _asks_sampling(own)
        if sampling or own.get("temperature") == 0:
            merged.pop("do_sample", None)
        elif beams:
            merged["do_sample"] = False
        if sampling and not beams:
            merged = {k: v for k, v in merged.items() if k in own or k not in ("num_beams", "num_beam_groups", "diversity_penalty")}
        if "max_new_tokens" in own or "max_length" in own:
            merged = {k: v for k, v in merged.items() if k in own or k not in ("max_new_tokens", "max_length")}
        merged.update(own)
        return cls(**merged)

    @property
    def sampling(self) -> bool:
        """Whether tokens are drawn at random."""
        if self.temperature == 0 or self.do_sample is False:
            return False
        return bool(self.do_sample or self.temperature is not None or any(getattr(self, name) is not None for name in SAMPLING_FILTERS))

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Ids that end a continuation, or () if end tokens are ignored."""
        return () if self.ignore_eos else self.eos_token_ids

    @property
    def filters(self) -> tuple[float, int, float, float, float, float, float]:
        """Temperature (0 for greedy), top_k, top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff, each with its neutral value where unset."""
        temperature = (1.0 if self.temperature is None else self.temperature) if self.sampling else 0.0
        neutral = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0}
        return (temperature, *(neutral[name] if getattr(self, name) is None else getattr(self, name) for name in SAMPLING_FILTERS))

    def limit(self, prompt_length: int, max_context: int | None) -> int:
        """New tokens allowed after a decoder prompt of this length, forced prefix included in it."""
        limit = self.max_new_tokens
        if limit is None and self.max_length is not None:
            limit = self.max_length - prompt_length
            if limit < 1:
                raise OptionError(f"max_length={self.max_length} leaves no room after {prompt_length} prompt tokens; give max_new_tokens instead")
        limit = DEFAULT_NEW_TOKENS if limit is None else limit
        return limit if max_context is None else min(limit, max_context - prompt_length)

    def minimum(self, prompt_length: int) -> int:
        """New tokens before end ids are allowed."""
        return max(self.min_new_tokens, self.min_length - prompt_length)

    def check_vocabulary(self, vocab_size: int) -> None:
        """Raises OptionError for an id that the model does not have."""
        for name in ("suppress_tokens", "begin_suppress_tokens", "eos_token_ids", "stop_token_ids", "forced_eos", "prefix_ids"):
            _check_ids(name, getattr(self, name), vocab_size)
        _check_ids("forced_bos", () if self.forced_bos is None else (self.forced_bos,), vocab_size)
        for ids, _ in self.logit_bias:
            _check_ids("logit_bias", ids, vocab_size)
        for ids in self.bad_words:
            _check_ids("bad_words", ids, vocab_size)
        if self.logprobs is not None and self.logprobs > vocab_size:
            raise OptionError(f"logprobs={self.logprobs} is more than the {vocab_size} tokens of the vocabulary")

    def _check_sampling(self):
        if self.do_sample and self.temperature == 0:
            raise OptionError("do_sample=True contradicts temperature=0, which is greedy")
        if self.num_beams > 1 and self.sampling:
            raise OptionError(f"num_beams={self.num_beams} is a search without sampling: give temperature=0 or do_sample=False, or num_beams=1")

    def _check_structure(self):
        given = [name for name in STRUCTURES if getattr(self, name) is not None]
        if len(given) > 1:
            raise OptionError(f"{' and '.join(given)} are given: an answer can follow only one of them")

    def _check_beams(self):
        if self.num_beams > 1:
            if self.num_return_sequences > self.num_beams:
                raise OptionError(f"num_return_sequences={self.num_return_sequences} is more than num_beams={self.num_beams}")
            for name in (*STRUCTURES, "speculation", "stop_when"):
                if getattr(self, name) is not None:
                    raise OptionError(f"{name} does not go with num_beams={self.num_beams}: use num_beams=1")
        if self.num_beams % self.num_beam_groups:
            raise OptionError(f"num_beams={self.num_beams} cannot be split into num_beam_groups={self.num_beam_groups} groups of one size")
        if self.diversity_penalty and self.num_beam_groups == 1:
            raise OptionError(f"diversity_penalty={self.diversity_penalty:g} needs num_beam_groups of at least 2")

    def _check_lengths(self):
        if self.max_new_tokens is not None and self.min_new_tokens > self.max_new_tokens:
            raise OptionError(f"min_new_tokens={self.min_new_tokens} is more than max_new_tokens={self.max_new_tokens}")
        if self.max_new_tokens is None and self.max_length is not None and self.min_length > self.max_length:
            raise OptionError(f"min_length={self.min_length} is more than max_length={self.max_length}")


_FIELDS = tuple(field.name for field in fields(GenerationOptions))


def _canonical(options: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for key, value in options.items():
        name = ALIASES.get(key, key)
        if name not in _FIELDS:
            from difflib import get_close_matches

            close = get_close_matches(key, [*_FIELDS, *ALIASES], n=3)
            raise OptionError(f"no generation option is called {key!r}" + (f"; did you mean {' or '.join(close)}?" if close else ""))
        if value is not None:
            if name in found:
                raise OptionError(f"{key} and another name of {name} are both given")
            found[name] = value
    return found


def _asks_sampling(own: Mapping[str, Any]) -> bool:
    temperature = own.get("temperature")
    if temperature == 0:
        return False
    return bool(own.get("do_sample") or temperature is not None or any(name in own for name in SAMPLING_FILTERS))


def _check_ids(name: str, ids: Sequence[int], vocab_size: int) -> None:
    for token in ids:
        if token >= vocab_size:
            raise OptionError(f"{name} has token id {token}, but the vocabulary has {vocab_size} tokens (0 to {vocab_size - 1})")
