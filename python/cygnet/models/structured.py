"""Structured answers: a tokenizer's vocabulary in the form that masks of schemas and grammars are computed from."""

from __future__ import annotations

from collections.abc import Sequence

from cygnet.generation.constraints import Vocabulary
from cygnet.tokenizers.token_bytes import token_bytes
from cygnet.tokenizers.tokenizer import Tokenizer


def vocabulary_of(tokenizer: Tokenizer, size: int, end_ids: Sequence[int]) -> Vocabulary:
    """Bytes and control tokens of a model.

    Parameters
    ----------
    tokenizer : Tokenizer
    size : int
        Columns of the model's logits.
    end_ids : sequence of int
        The model's end tokens; the tokenizer's own is one of them.

    Raises
    ------
    MissingDependency
        Without llguidance.
    OptionError
        If there is no end token.
    TokenizerError
        If tokens have no bytes of their own.
    """
    own = [] if tokenizer.eos_id is None else [tokenizer.eos_id]
    ends = [token for token in dict.fromkeys([*end_ids, *own]) if token < size]
    special = [token for token in tokenizer.special_tokens.values() if token < size]
    return Vocabulary(token_bytes(tokenizer, size), ends, special)
