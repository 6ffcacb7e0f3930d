"""Decoding one id at a time, never showing half a character, at a cost that does not grow with the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cygnet.tokenizers.tokenizer import Tokenizer


class StreamDecoder:
    """Takes ids one by one and gives the text they complete.

    The pieces of push() and the rest that flush() gives join to decode(all ids, clean_up=False).

    Examples
    --------
    >>> from cygnet.tokenizers import Tokenizer
    >>> tokenizer = Tokenizer.from_json({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"}})
    >>> stream = tokenizer.stream_decoder()
    >>> [stream.push(0), stream.push(1), stream.flush()]
    ['a', ' b', '']
    """

    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool = True):
        self._tokenizer = tokenizer
        self._hidden = tokenizer.added.special_contents if skip_special_tokens else frozenset()
        self._decoder = tokenizer.decoder.stream() if tokenizer.decoder else _Spaced()

    def push(self, token_id: int) -> str:
        """The text that this id completes; often empty."""
        token = self._tokenizer.id_to_token(token_id)
        if token is None:
            return ""
        if token in self._hidden:
            return self._decoder.push("") if getattr(self._tokenizer.decoder, "keeps_hidden", False) else ""
        return self._decoder.push(token)

    def flush(self) -> str:
        """What is still held back, once no id will follow; the decoder is then as new."""
        rest = self._decoder.flush()
        self._decoder = self._tokenizer.decoder.stream() if self._tokenizer.decoder else _Spaced()
        return rest


class _Spaced:
    """Tokens joined by spaces: what a tokenizer without a decoder means."""

    def __init__(self):
        self._first = True

    def push(self, token: str) -> str:
        first, self._first = self._first, False
        return token if first else " " + token

    def flush(self) -> str:
        return ""
