"""WordLevel: a word is in the vocabulary or unknown."""

from __future__ import annotations

from cygnet.errors import TokenizerError
from cygnet.tokenizers.components import Piece
from cygnet.tokenizers.json_fields import Fields, read_vocab


class WordLevel:
    """Vocabulary of whole words.

    Parameters
    ----------
    vocab : dict of str -> int
    unk_token : str
        What an unknown word becomes; must itself be in the vocabulary for texts that need it.
    """

    def __init__(self, vocab: dict[str, int], unk_token: str):
        self.vocab = vocab
        self.names = {i: t for t, i in vocab.items()}
        self.vocab_size = len(vocab)
        self.unk_token = unk_token

    def tokenize(self, text: str) -> list[Piece]:
        found = self.vocab.get(text)
        if found is None:
            found = self.vocab.get(self.unk_token)
        if found is None:
            raise TokenizerError(f"model.unk_token {self.unk_token!r} is not in the vocabulary, and the word {text[:40]!r} is unknown")
        return [(found, 0, len(text))]

    def token_to_id(self, token: str) -> int | None:
        return self.vocab.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        return self.names.get(token_id)

    def fast_lane(self, normalizer, pre_tokenizer) -> None:
        return None


def from_fields(fields: Fields) -> WordLevel:
    """WordLevel from its object in tokenizer.json."""
    return WordLevel(read_vocab(fields.get("vocab", (dict, bytes)), f"{fields.where}.vocab"), fields.string("unk_token", "<unk>"))
