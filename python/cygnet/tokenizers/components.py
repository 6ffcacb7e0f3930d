"""What each stage of a tokenizer must offer. A stage is any object with these methods; tokenizer.json names map onto them.

text -> added tokens cut out -> normalizer -> pre-tokenizer -> model -> post-processor -> ids, and ids -> tokens -> decoder -> text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from cygnet.tokenizers.aligned import AlignedText

if TYPE_CHECKING:
    from cygnet._core._lane import Lane
    from cygnet.tokenizers.encoding import Encoding, Part

Piece = tuple[int, int, int]  # id, start, end: the range in characters of the text given to the model


class Normalizer(Protocol):
    """Rewrites text and keeps its alignment."""

    def normalize(self, text: AlignedText) -> AlignedText: ...


class PreTokenizer(Protocol):
    """Cuts normalised text into words; may rewrite them (byte-level, Metaspace). Never yields an empty word."""

    def split(self, text: AlignedText) -> list[AlignedText]: ...


class Model(Protocol):
    """Turns one word into pieces of the vocabulary."""

    vocab_size: int

    def tokenize(self, text: str) -> list[Piece]: ...

    def token_to_id(self, token: str) -> int | None: ...

    def id_to_token(self, token_id: int) -> str | None: ...

    def fast_lane(self, normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> Lane | None:
        """A compiled lane that gives the same ids as these three stages in one call, or None where there is none."""


class PostProcessor(Protocol):
    """Puts the encoded sequences (one or two) and the special tokens around them together."""

    def added(self, pair: bool) -> int:
        """How many special tokens process() adds."""

    def process(self, parts: list[Part], add_special_tokens: bool) -> Encoding: ...


class Decoder(Protocol):
    """Turns tokens back into text, all at once or as they come.

    A decoder with a true attribute `keeps_hidden` is given special tokens that are left out as empty strings, so that it knows of them.
    """

    def decode(self, tokens: list[str]) -> str: ...

    def stream(self) -> DecoderStream:
        """A fresh incremental form: the pushed pieces and the flushed rest together equal decode() of all tokens."""


class DecoderStream(Protocol):
    def push(self, token: str) -> str: ...

    def flush(self) -> str: ...
