"""Structured output: JSON schema, regular expression or grammar as a mask over the vocabulary, through llguidance (extra `structured`).

Fails closed: what cannot be compiled is an error before the first token, and a parser that gives up ends the request with an error, never with
free text. White space between the parts of a JSON text is bounded, so that no model can fill the answer with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from cygnet._core._processors import apply_bitmask
from cygnet.errors import DecodingError, MissingDependency, OptionError
from cygnet.generation.options import GenerationOptions

# Between the parts of a JSON text: nothing, one space, or a line break with its indentation.
WHITE_SPACE = r"( |\n[ \t]{0,20})"

# Keywords that llguidance enforces (it refuses those of the standard that it does not), and those that only describe.
_ENFORCED = frozenset(
    "type enum const anyOf oneOf allOf $ref $defs definitions properties additionalProperties patternProperties required minProperties "
    "maxProperties items prefixItems additionalItems minItems maxItems minLength maxLength pattern format minimum maximum exclusiveMinimum "
    "exclusiveMaximum multipleOf".split()
)
_DESCRIBING = frozenset("title description default examples $schema $id $comment readOnly writeOnly deprecated".split())
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "additionalItems")


class ConstraintState(Protocol):
    """A constraint along one continuation."""

    finished: bool  # nothing can follow

    def mask(self, row: np.ndarray) -> None:
        """Bars in (V,) float32 logits, in place, what must not come next."""

    def accept(self, token_id: int) -> None:
        """Takes in the chosen token."""


class Constraint(Protocol):
    """What a whole answer must look like."""

    def start(self) -> ConstraintState: ...


class Vocabulary:
    """The bytes of every token, as grammars need them; built once a model.

    Parameters
    ----------
    tokens : list of bytes
        By id; b"" for ids that stand for no text.
    end_ids : sequence of int
        At least one: what a model says after a complete answer.
    special_ids : sequence of int
        Tokens whose bytes are not text.

    Raises
    ------
    MissingDependency
        Without llguidance.
    """

    def __init__(self, tokens: Sequence[bytes], end_ids: Sequence[int], special_ids: Sequence[int] = ()):
        if not end_ids:
            raise OptionError("structured output needs an end token: give eos_token_id")
        self._library = _library()
        self.tokens = tokens
        self.end_ids = tuple(end_ids)
        self.special_ids = sorted({*special_ids, *end_ids})
        self._grammar = lru_cache(maxsize=32)(lambda kind, source: Grammar(self, kind, source))

    @cached_property
    def compiled(self) -> Any:
        """The tokenizer of llguidance."""
        return self._library.LLTokenizer(self._library.TokenizerWrapper(_TokenTable(self)), eos_token=list(self.end_ids))

    def json_schema(self, schema: Mapping[str, Any] | str | bool) -> Grammar:
        """Answers that are JSON and valid under a schema; {} or True stands for any JSON.

        Raises
        ------
        OptionError
            For a schema that is not JSON, or has a keyword that is unknown or cannot be enforced; names its place.
        """
        if isinstance(schema, str):
            try:
                schema = json.loads(schema)
            except ValueError as error:
                raise OptionError(f"the JSON schema is not JSON: {error}") from None
        if schema is True:
            schema = {}
        _check_schema(schema, "#")
        overrides = {"lenient": False, "whitespace_pattern": WHITE_SPACE}
        return self._grammar("JSON schema", self._library.LLMatcher.grammar_from_json_schema(dict(schema), overrides=overrides))

    def regex(self, pattern: str) -> Grammar:
        """Answers that a regular expression matches whole (Rust syntax: no look-around or back-references).

        Raises
        ------
        OptionError
            For a pattern that cannot be compiled.
        """
        return self._grammar("regular expression", self._library.LLMatcher.grammar_from_regex(pattern))

    def grammar(self, text: str) -> Grammar:
        """Answers that a grammar in the Lark syntax of llguidance derives from its rule `start`.

        Raises
        ------
        OptionError
            For a grammar that cannot be compiled.
        """
        return self._grammar("grammar", self._library.LLMatcher.grammar_from_lark(text))


class Grammar:
    """A compiled Constraint.

    Parameters
    ----------
    vocabulary : Vocabulary
    kind : str
        For messages.
    source : str
        The grammar in the form that llguidance takes.
    """

    def __init__(self, vocabulary: Vocabulary, kind: str, source: str):
        library = vocabulary._library
        self._matcher = library.LLMatcher(vocabulary.compiled, source, log_level=0)
        self._words = -(-len(vocabulary.tokens) // 32)
        failed, messages = library.LLMatcher.validate_grammar_with_warnings(source, vocabulary.compiled)
        # A warning says that something was understood otherwise than written: that would be failing open.
        problem = self._matcher.get_error() or "; ".join(messages)
        if failed or problem:
            raise OptionError(f"the {kind} cannot be enforced: {problem.strip()}")

    def start(self) -> GrammarState:
        return GrammarState(self._matcher.deep_copy(), self._words)


def constrained(options: GenerationOptions, vocabulary: Callable[[], Vocabulary] | None) -> GenerationOptions:
    """Options whose json_schema, regex or grammar has become a compiled constraint.

    Parameters
    ----------
    options : GenerationOptions
    vocabulary : function or None
        Makes the model's Vocabulary.

    Raises
    ------
    OptionError
        If it cannot be enforced, or the model has no vocabulary.
    """
    kind = next((kind for kind in ("json_schema", "regex", "grammar") if getattr(options, kind) is not None), None)
    if kind is None:
        return options
    if vocabulary is None:
        raise OptionError(f"{kind} needs a model with a tokenizer")
    return replace(options, **{kind: None}, constraint=getattr(vocabulary(), kind)(getattr(options, kind)))


class GrammarState:
    """A Grammar along one continuation; see ConstraintState."""

    def __init__(self, matcher: Any, words: int):
        self._matcher = matcher
        self._bits = np.empty(words, np.uint32)

    @property
    def finished(self) -> bool:
        return self._matcher.is_stopped()

    def mask(self, row: np.ndarray) -> None:
        self._matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)
        self._check()
        apply_bitmask(row, self._bits)

    def accept(self, token_id: int) -> None:
        self._matcher.consume_token(token_id)
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise DecodingError(f"the grammar was given up in mid-answer: {self._matcher.get_error().strip()}")


class _TokenTable:
    """A vocabulary as llguidance's TokenizerWrapper reads it; its texts are cut greedily into the longest tokens."""

    def __init__(self, vocabulary: Vocabulary):
        self.tokens = list(vocabulary.tokens)
        self.special_token_ids = vocabulary.special_ids
        self.eos_token_id = vocabulary.end_ids[0]
        self.bos_token_id = None
        special = set(vocabulary.special_ids)
        self._ids = {token: i for i, token in enumerate(self.tokens) if token and i not in special}
        self._longest = max(map(len, self._ids), default=0)

    def __call__(self, data: bytes) -> list[int]:
        ids, at = [], 0
        while at < len(data):
            sizes = range(min(self._longest, len(data) - at), 0, -1)
            size = next((size for size in sizes if data[at : at + size] in self._ids), None)
            if size is not None:
                ids.append(self._ids[data[at : at + size]])
            at += size or 1
        return ids


def _library() -> Any:
    try:
        import llguidance
    except ImportError:
        raise MissingDependency("structured output needs llguidance: pip install 'cygnet[structured]'") from None
    return llguidance


def _check_schema(schema: Any, place: str) -> None:
    """Refuses keywords that would be passed over in silence, in a schema and all its parts."""
    if isinstance(schema, bool) and place != "#":
        return
    if not isinstance(schema, Mapping):
        raise OptionError(f"the JSON schema at {place} must be an object, not {schema!r}")
    for key, value in schema.items():
        if key not in _ENFORCED and key not in _DESCRIBING:
            raise OptionError(
                f"the JSON schema has the keyword {key!r} at {place}, which is unknown or cannot be enforced: remove it to go without it"
            )
        if key in _MAPS_OF_SCHEMAS and isinstance(value, Mapping):
            for name, part in value.items():
                _check_schema(part, f"{place}/{key}/{name}")
        elif key in _LISTS_OF_SCHEMAS or (key == "items" and isinstance(value, list)):
            for number, part in enumerate(value if isinstance(value, list) else [value]):
                _check_schema(part, f"{place}/{key}/{number}")
        elif key in _SCHEMAS:
            _check_schema(value, f"{place}/{key}")
