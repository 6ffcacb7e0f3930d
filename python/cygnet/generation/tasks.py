"""A task is one request as the scheduler sees it: what it wants to feed next, and what it does with the logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from cygnet.errors import CacheFull, ContextOverflow, OptionError
from cygnet.generation.engine_protocol import Engine, Source
from cygnet.generation.engine_protocol import Sequence as EngineSequence
from cygnet.generation.options import GenerationOptions
from cygnet.generation.prefix_cache import PrefixCache
from cygnet.generation.result import Delta
from cygnet.generation.stopping import TextDecoder, TextTracker

NONE, LAST, ALL = "none", "last", "all"


class Feed(NamedTuple):
    """Ids to append to a sequence in the next forward pass, and which of their positions get logits."""

    sequence: EngineSequence
    ids: list[int]
    rows: str


@dataclass(frozen=True)
class Request:
    """One prompt and what to do with it.

    Attributes
    ----------
    prompt_ids : list of int
        What the decoder reads first: the prompt, or decoder_start_token_id for an encoder-decoder model.
    options : GenerationOptions
    decoder : function or None
        Makes a fresh TextDecoder for each sample; None gives ids without text.
    source_ids : list of int or None
        The encoder's input.
    """

    prompt_ids: Sequence[int]
    options: GenerationOptions
    decoder: Callable[[], TextDecoder] | None = None
    source_ids: Sequence[int] | None = None

    def check(self, engine: Engine) -> None:
        """Raises OptionError for ids outside the vocabulary, ContextOverflow for a prompt without room for one new token, and CacheFull for more
        continuations than the engine's memory can ever hold."""
        self.options.check_vocabulary(engine.vocab_size)
        for name, ids in (("prompt", self.prompt_ids), ("source", () if self.source_ids is None else self.source_ids)):
            if len(ids) and not (0 <= min(ids) and max(ids) < engine.vocab_size):
                raise OptionError(f"the {name} has ids outside the vocabulary of {engine.vocab_size} tokens")
        if not len(self.decoder_ids):
            raise OptionError("the prompt is empty: at least one token is needed to start from, for example the beginning-of-text token")
        room = engine.max_context
        if room is not None and len(self.decoder_ids) >= room:
            raise ContextOverflow(f"the prompt has {len(self.decoder_ids)} tokens; the context holds {room}, and one must stay free for the answer")
        count, limit = max(self.options.num_return_sequences, self.options.num_beams), self.options.limit(len(self.decoder_ids), room)
        # The first continuation goes on in the prompt's blocks. A task makes its continuations when it is made: too many must not get so far.
        wanted = -(-len(self.decoder_ids) // engine.block_tokens) + (count - 1) * blocks_for(engine, limit)
        if wanted > engine.blocks_total:
            raise CacheFull(too_large(wanted, engine.blocks_total, engine.block_tokens))

    @property
    def decoder_ids(self) -> list[int]:
        """Decoder prompt with forced prefix."""
        return [*self.prompt_ids, *self.options.prefix_ids]

    @property
    def prompt_tokens(self) -> int:
        """What counts as prompt in Usage."""
        return len(self.prompt_ids if self.source_ids is None else self.source_ids)

    def tracker(self) -> TextTracker:
        return TextTracker(self.decoder() if self.decoder else None, self.options.stop)


class Task(Protocol):
    """Lives in the scheduler's thread: begin, then plan and advance until finished, then close in any case."""

    finished: bool
    reading: bool  # still at its prompt: what it feeds counts against the budget
    read: int  # tokens of its prompt that it has read
    source_ids: Sequence[int] | None

    def begin(self, engine: Engine, cache: PrefixCache, source: Source | None) -> None:
        """Makes its sequences; `source` is the encoded source_ids, which the scheduler releases."""

    def plan(self, budget: int) -> list[Feed]:
        """What to feed next; prompt tokens at most `budget` of them. Asked again, it answers again."""

    def advance(self, rows: np.ndarray) -> None:
        """Takes the logits (R, V) of the feeds planned last."""

    def blocks_wanted(self, engine: Engine) -> int:
        """Memory blocks it may still come to need, at worst."""

    def close(self) -> None:
        """Gives back its sequences; may be called at any moment, more than once."""

    def cancel(self) -> None:
        """Ends it with what it has."""

    def results(self) -> list:
        """What it made, once finished or cancelled."""


class Prompt:
    """The part of a task that reads the prompt in chunks, starting from what the prefix cache has.

    Each chunk goes into the cache, and before each the cache is asked for more: of equal prompts that come together each part is read once,
    whoever gives up.

    Parameters
    ----------
    ids : list of int
    """

    def __init__(self, ids: list[int]):
        self.ids = ids
        self.sequence: EngineSequence | None = None
        self.cached = 0
        self._cache: PrefixCache | None = None
        self._seen = 0  # the cache's version that was looked at
        self._read = 0
        self._planned = 0

    def begin(self, engine: Engine, cache: PrefixCache, source: Source | None) -> None:
        self.sequence = engine.sequence(source)
        if source is None:
            self._cache, self._seen = cache, -1
            self._catch_up()
            cache.expect(self.ids)

    def _catch_up(self) -> None:
        """Goes on from what others have read meanwhile."""
        if self._cache is None or self._seen == self._cache.version:
            return
        self._seen = self._cache.version
        sequence, length = self._cache.lookup(self.ids)
        if length > self._read:
            sequence, self.sequence = self.sequence, sequence
            self.cached += length - self._read
            self._read = length
        if sequence is not None:
            sequence.release()

    @property
    def done(self) -> bool:
        return self._read == len(self.ids)

    @property
    def read(self) -> int:
        return self._read

    @property
    def left(self) -> int:
        return len(self.ids) - self._read

    def plan(self, budget: int) -> list[Feed]:
        if budget > 0:
            self._catch_up()
        self._planned = min(budget, self.left)
        if self._planned == 0:
            return []
        self.sequence.announce(len(self.ids))
        end = self._read + self._planned
        return [Feed(self.sequence, self.ids[self._read : end], LAST if end == len(self.ids) else NONE)]

    def advance(self) -> None:
        self._read += self._planned
        if self._cache is not None and self._planned:
            self._cache.insert(self.sequence, self.ids)
            self._seen = self._cache.version

    def release(self) -> None:
        if self.sequence is not None:
            self.sequence.release()
            self.sequence = None


def too_large(wanted: int, there: int, block_tokens: int) -> str:
    """What a request is told that needs more memory than there is with nothing else running."""
    return (
        f"the request may need {wanted} more memory blocks of {block_tokens} tokens and {there} are free with nothing else running: "
        "give a smaller max_new_tokens, a shorter prompt, fewer samples or beams"
    )


def blocks_for(engine: Engine, tokens: int) -> int:
    """Memory blocks of a continuation that owns so many tokens: the first may be a copy of one that it shared."""
    return -(-tokens // engine.block_tokens) + 1


Emit = Callable[[Delta], None]


def ignore(delta: Delta) -> None:
    """The emit function of a request that nobody streams."""
