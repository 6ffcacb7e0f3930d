"""Unigram: the most probable segmentation under a piece-wise model (Kudo 2018), as the tokenizers library computes it."""

from __future__ import annotations

from collections import abc
from typing import Any

from cygnet._core._unigram import UnigramSegmenter
from cygnet._core._unigram_lane import UnigramLane
from cygnet._core._vocabulary import Pieces, read_pieces
from cygnet.errors import TokenizerError
from cygnet.tokenizers import split_rules
from cygnet.tokenizers.byte_alphabet import BYTE_TOKENS
from cygnet.tokenizers.components import Normalizer, Piece, PreTokenizer
from cygnet.tokenizers.json_fields import Fields, parsed
from cygnet.tokenizers.lane_steps import chain_of, flatten
from cygnet.tokenizers.pretokenizers import Metaspace, Split, whitespace_split

# A character that no piece covers costs this much more than the least probable piece.
UNKNOWN_PENALTY = 10.0
# What the words of a vocabulary begin with where no Metaspace says otherwise.
SPACE_SIGN = "▁"


class Unigram:
    """Pieces with their log-probabilities.

    Parameters
    ----------
    vocab : sequence of (str, float), or Pieces
        Piece and score of each id.
    unk_id : int, optional
        Id of what no piece covers; texts that need it raise without.
    byte_fallback : bool
        Spell uncovered stretches with the pieces <0x00> to <0xFF>.

    Examples
    --------
    >>> Unigram([("<unk>", 0.0), ("a", -1.0), ("ab", -1.5), ("b", -1.0)], unk_id=0).tokenize("abax")
    [(2, 0, 2), (1, 2, 3), (0, 3, 4)]
    """

    def __init__(self, vocab: abc.Sequence[tuple[str, float]] | Pieces, unk_id: int | None = None, byte_fallback: bool = False):
        self.vocabulary = vocab if isinstance(vocab, Pieces) else Pieces(vocab)
        self.vocab_size = len(self.vocabulary)
        self.unk_id = unk_id
        scores = self.vocabulary.scores
        byte_ids = [self.token_to_id(token) for token in BYTE_TOKENS] if byte_fallback else None
        floor = min(scores, default=0.0) - UNKNOWN_PENALTY
        self.segmenter = UnigramSegmenter(self.vocabulary.trie, scores, floor, unk_id, byte_ids)

    def tokenize(self, text: str) -> list[Piece]:
        """Pieces of a text.

        Raises
        ------
        TokenizerError
            Where a character is not covered and there is no unknown piece.
        """
        pieces = self.segmenter.pieces(text)
        if pieces is None:
            raise TokenizerError(f"model.unk_id is not set, and {text[:40]!r} holds a character that no piece covers")
        return pieces

    def token_to_id(self, token: str) -> int | None:
        return self.vocabulary.id_of(token)

    def id_to_token(self, token_id: int) -> str | None:
        return self.vocabulary.spelling(token_id)

    def fast_lane(self, normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> UnigramLane | None:
        words = lane_words(pre_tokenizer)
        steps, known = chain_of(flatten(normalizer)) if words else (None, False)
        if not known:
            return None
        apart = not words["cut"] and self.vocabulary.words_are_apart(words["sign"])
        return UnigramLane(self.segmenter, steps, **words, words_apart=apart)


def lane_words(pre_tokenizer: PreTokenizer | None) -> dict[str, Any] | None:
    """What the lane must do for a pre-tokenizer: nothing, or Metaspace, perhaps after a split at white space; None for anything else."""
    stages = split_rules.flatten(pre_tokenizer)
    if not stages:
        return {"split_white_space": False, "sign": SPACE_SIGN, "spaces_are_signs": False, "prepend": "never", "cut": False}
    last = stages[-1]
    if not isinstance(last, Metaspace):
        return None
    splits = [isinstance(s, Split) and (s.pattern, s.behaviour, s.invert) == (whitespace_split().pattern, "Removed", False) for s in stages[:-1]]
    if not all(splits) or (splits and last.prepend_scheme == "first"):
        return None
    return {
        "split_white_space": bool(splits),
        "sign": last.replacement,
        "spaces_are_signs": True,
        "prepend": last.prepend_scheme,
        "cut": last.cut,
    }


def from_fields(fields: Fields) -> Unigram:
    """Unigram from its object in tokenizer.json."""
    vocab = fields.get("vocab", (list, bytes))
    pieces = (Pieces.from_json(vocab) if isinstance(vocab, bytes) else None) or listed_pieces(vocab, f"{fields.where}.vocab")
    unk_id = fields.size("unk_id", None)
    if unk_id is not None and unk_id >= len(pieces):
        raise TokenizerError(f"{fields.where}.unk_id is {unk_id}; the vocabulary has {len(pieces)} pieces")
    return Unigram(pieces, unk_id, fields.flag("byte_fallback", False))


def listed_pieces(value: list | bytes, where: str) -> Pieces:
    """Pieces of a vocabulary row by row, so that an error can name the one at fault."""
    rows = parsed(value, where)
    if not isinstance(rows, list):
        raise TokenizerError(f"{where} must be a list, not {type(rows).__name__}")
    vocab, wrong = read_pieces(rows)
    if wrong >= 0:
        raise TokenizerError(f"{where}[{wrong}] must be a piece and its score, a finite number, not {rows[wrong]!r:.80}")
    if not vocab:
        raise TokenizerError(f"{where} is empty")
    return Pieces(vocab)
