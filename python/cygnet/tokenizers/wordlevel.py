"""WordLevel: a word is in the vocabulary or unknown."""

from __future__ import annotations

from cygnet._core._vocabulary import Vocabulary
from cygnet.errors import TokenizerError
from cygnet.tokenizers.components import Piece
from cygnet.tokenizers.json_fields import Fields, read_vocabulary


class WordLevel:
    """Vocabulary of whole words.

    Parameters
    ----------
    vocab : dict of str -> int, or Vocabulary
    unk_token : str
        What an unknown word becomes; must itself be in the vocabulary for texts that need it.
    """

    def __init__(self, vocab: dict[str, int] | Vocabulary, unk_token: str):
        self.vocabulary = vocab if isinstance(vocab, Vocabulary) else Vocabulary(vocab)
        self.vocab_size = len(self.vocabulary)
        self.unk_token = unk_token

    def tokenize(self, text: str) -> list[Piece]:
        found = self.token_to_id(text)
        if found is None:
            found = self.token_to_id(self.unk_token)
        if found is None:
            raise TokenizerError(f"model.unk_token {self.unk_token!r} is not in the vocabulary, and the word {text[:40]!r} is unknown")
        return [(found, 0, len(text))]

    def token_to_id(self, token: str) -> int | None:
        return self.vocabulary.id_of(token)

    def id_to_token(self, token_id: int) -> str | None:
        return self.vocabulary.spelling(token_id)

    def fast_lane(self, normalizer, pre_tokenizer) -> None:
        return None


def from_fields(fields: Fields) -> WordLevel:
    """WordLevel from its object in tokenizer.json."""
    return WordLevel(read_vocabulary(fields.get("vocab", (dict, bytes)), f"{fields.where}.vocab"), fields.string("unk_token", "<unk>"))
