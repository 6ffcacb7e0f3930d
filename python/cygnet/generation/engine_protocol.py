"""What generation asks of an engine: ragged forward passes over sequences whose memory is shared by forking."""

from __future__ import annotations

from collections.abc import Sequence as Ids
from typing import Any, Protocol

import numpy as np


class Sequence(Protocol):
    """Tokens the model has read, as key/value memory in blocks. Forks share blocks; a shared block is copied when written."""

    length: int

    def fork(self) -> Sequence:
        """A second sequence with the same tokens; nothing is copied."""

    def truncate(self, length: int) -> None:
        """Forgets every token from `length` on."""

    def announce(self, length: int) -> None:
        """Tells that a text of so many tokens is about to be read in pieces."""

    def release(self) -> None:
        """Gives the memory back; the sequence must not be used again."""


class Source(Protocol):
    """An encoded source text of an encoder-decoder model."""

    def release(self) -> None: ...


class Engine(Protocol):
    """A loaded model. A sequence's logits never depend, by a single bit, on what else a forward pass computes."""

    vocab_size: int
    max_context: int | None
    block_tokens: int  # tokens of one memory block
    blocks_total: int
    blocks_free: int

    def sequence(self, source: Source | None = None) -> Sequence:
        """An empty sequence; `source` for encoder-decoder models."""

    def encode(self, sources: list[Ids[int]]) -> list[Source]:
        """Runs the encoder on each source, as one batch."""

    def token_cost(self, keys: int, logits: bool) -> float:
        """Work of one token that looks at `keys` keys, with or without logits, in any unit."""

    def variant(self, length: int) -> int | None:
        """Which position tables a text of that length is read with: its keys serve texts of the same variant only. None: no other text."""

    def forward(self, batch: list[tuple[Sequence, Ids[int]]], rows: Any = "last") -> np.ndarray:
        """Appends the ids to each sequence.

        Parameters
        ----------
        batch : list of (Sequence, sequence of int)
            Each sequence once.
        rows : "last", "all", "none" or list of int
            Which new positions get logits: the last of each sequence, all, none, or so many of the last ones of each.

        Returns
        -------
        (R, V) float32
            In the order of the batch; the caller may write to it.

        Raises
        ------
        CacheFull
            If the memory would be exceeded; nothing is appended.
        Cancelled
            After cancel(); nothing is appended.
        """

    def cancel(self) -> None:
        """Stops the forward pass that runs now, from any thread."""

    def blocks_needed(self, sequence: Sequence, count: int) -> int:
        """How many more blocks it takes to append `count` tokens."""
