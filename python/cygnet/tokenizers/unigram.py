"""Unigram: the most probable segmentation under a piece-wise model (Kudo 2018), as the tokenizers library computes it."""

from __future__ import annotations

from collections.abc import Sequence

from cygnet._core._unigram import UnigramSegmenter
from cygnet.errors import TokenizerError
from cygnet.tokenizers.components import Normalizer, Piece, PreTokenizer
from cygnet.tokenizers.json_fields import Fields

# A character that no piece covers costs this much more than the least probable piece.
UNKNOWN_PENALTY = 10.0


class Unigram:
    """Pieces with their log-probabilities.

    Parameters
    ----------
    vocab : sequence of (str, float)
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

    def __init__(self, vocab: Sequence[tuple[str, float]], unk_id: int | None = None, byte_fallback: bool = False):
        self.names = [token for token, _ in vocab]
        self.ids = {token: i for i, token in enumerate(self.names)}
        self.vocab_size = len(vocab)
        scores = [score for _, score in vocab]
        byte_ids = [self.ids.get(f"<0x{byte:02X}>") for byte in range(256)] if byte_fallback else None
        floor = min(scores, default=0.0) - UNKNOWN_PENALTY
        self.segmenter = UnigramSegmenter(self.names, range(len(vocab)), scores, floor, False, unk_id, byte_ids)

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
        return self.ids.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        return self.names[token_id] if 0 <= token_id < len(self.names) else None

    def fast_lane(self, normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> None:
        return None


def from_fields(fields: Fields) -> Unigram:
    """Unigram from its object in tokenizer.json."""
    rows = fields.get("vocab", list)
    vocab: list[tuple[str, float]] = []
    for i, row in enumerate(rows):
        if not (isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and type(row[1]) in (int, float)):
            raise TokenizerError(f"{fields.where}.vocab[{i}] must be a piece and its score")
        if row[1] != row[1] or abs(row[1]) == float("inf"):
            raise TokenizerError(f"{fields.where}.vocab[{i}]: the score of {row[0][:40]!r} is not finite")
        vocab.append((row[0], float(row[1])))
    unk_id = fields.size("unk_id", None)
    if unk_id is not None and unk_id >= len(vocab):
        raise TokenizerError(f"{fields.where}.unk_id is {unk_id}; the vocabulary has {len(vocab)} pieces")
    if not vocab:
        raise TokenizerError(f"{fields.where}.vocab is empty")
    return Unigram(vocab, unk_id, fields.flag("byte_fallback", False))
