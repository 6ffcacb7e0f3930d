"""Tokenizers: text to ids and back, exactly as the library that made the tokenizer's file does it."""

from importlib import import_module
from typing import TYPE_CHECKING

from cygnet.tokenizers.added_tokens import AddedToken
from cygnet.tokenizers.encoding import Encoding
from cygnet.tokenizers.streaming import StreamDecoder
from cygnet.tokenizers.tokenizer import Tokenizer
from cygnet.tokenizers.truncation import Padding, Truncation

if TYPE_CHECKING:
    from cygnet.tokenizers.explanation import explain
    from cygnet.tokenizers.trainer import train_bpe

__all__ = ["AddedToken", "Encoding", "Padding", "StreamDecoder", "Tokenizer", "Truncation", "explain", "train_bpe"]

# What only lessons and training need is loaded when it is first used.
_LATER = {"explain": "explanation", "train_bpe": "trainer"}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'cygnet.tokenizers' has no attribute {name!r}")
    return getattr(import_module(f"cygnet.tokenizers.{_LATER[name]}"), name)
