"""Tokenizers: text to ids and back, exactly as the library that made the tokenizer's file does it."""

from cygnet.tokenizers.added_tokens import AddedToken
from cygnet.tokenizers.encoding import Encoding
from cygnet.tokenizers.explain import explain
from cygnet.tokenizers.streaming import StreamDecoder
from cygnet.tokenizers.tokenizer import Tokenizer
from cygnet.tokenizers.trainer import train_bpe
from cygnet.tokenizers.truncation import Padding, Truncation

__all__ = ["AddedToken", "Encoding", "Padding", "StreamDecoder", "Tokenizer", "Truncation", "explain", "train_bpe"]
