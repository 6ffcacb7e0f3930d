"""WordPiece: a word becomes the longest token that begins it, then the longest that continues it, and so on (BERT)."""

from __future__ import annotations

from cygnet._core._lane import Lane
from cygnet._core._vocabulary import Vocabulary
from cygnet._core._wordpiece import BertLane, BertWordsLane, WordPieces
from cygnet.errors import TokenizerError
from cygnet.tokenizers.bert_words import BertWords
from cygnet.tokenizers.components import Normalizer, Piece, PreTokenizer
from cygnet.tokenizers.json_fields import Fields, read_vocabulary
from cygnet.tokenizers.lane_steps import chain_of, flatten
from cygnet.tokenizers.normalizers import BertNormalizer
from cygnet.tokenizers.pretokenizers import BertPreTokenizer

# Scratch memory of a lane holds one word: absurd limits would only cost memory.
MAX_LANE_CHARS = 1 << 16
# A max_input_chars_per_word that no word reaches.
NO_LIMIT = 2**31 - 1


class WordPiece:
    """Vocabulary of word beginnings and continuations.

    Parameters
    ----------
    vocab : dict of str -> int, or Vocabulary
    unk_token : str
        What a word becomes that the tokens do not cover; must be in the vocabulary for texts that need it.
    continuing_subword_prefix : str
        Beginning of the tokens that continue a word.
    max_input_chars_per_word : int
        Longer words are unknown.

    Examples
    --------
    >>> WordPiece({"[UNK]": 0, "un": 1, "##happ": 2, "##y": 3}).tokenize("unhappy")
    [(1, 0, 2), (2, 2, 6), (3, 6, 7)]
    """

    def __init__(
        self,
        vocab: dict[str, int] | Vocabulary,
        unk_token: str = "[UNK]",
        continuing_subword_prefix: str = "##",
        max_input_chars_per_word: int = 100,
    ):
        self.vocabulary = vocab if isinstance(vocab, Vocabulary) else Vocabulary(vocab)
        self.vocab_size = len(self.vocabulary)
        self.unk_token = unk_token
        self.continuing_subword_prefix = continuing_subword_prefix
        self.max_input_chars_per_word = max_input_chars_per_word
        self.pieces = WordPieces(self.vocabulary, unk_token, continuing_subword_prefix, max_input_chars_per_word)

    def tokenize(self, text: str) -> list[Piece]:
        """Pieces of a word.

        Raises
        ------
        TokenizerError
            Where the word is unknown and the vocabulary has no unknown token.
        """
        found = self.pieces.pieces(text)
        if found is not None:
            return found
        unknown = self.token_to_id(self.unk_token)
        if unknown is None:
            raise TokenizerError(f"model.unk_token {self.unk_token!r} is not in the vocabulary, and the word {text[:40]!r} is unknown")
        return [(unknown, 0, len(text))]

    def token_to_id(self, token: str) -> int | None:
        return self.vocabulary.id_of(token)

    def id_to_token(self, token_id: int) -> str | None:
        return self.vocabulary.spelling(token_id)

    def fast_lane(self, normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> Lane | None:
        if type(pre_tokenizer) is BertWords and normalizer is None and self.max_input_chars_per_word == NO_LIMIT:
            return BertWordsLane(self.pieces, pre_tokenizer.lowercase, pre_tokenizer.strip_accents)
        if type(pre_tokenizer) is not BertPreTokenizer or self.max_input_chars_per_word > MAX_LANE_CHARS:
            return None
        # A BertNormalizer at the end is done in one pass with the rest; what comes before it, or instead of it, in steps.
        stages = flatten(normalizer)
        bert = stages.pop() if stages and type(stages[-1]) is BertNormalizer else BertNormalizer(False, False, False, False)
        steps, known = chain_of(stages)
        return BertLane(self.pieces, steps, bert.clean_text, bert.handle_chinese_chars, bert.strip_accents, bert.lowercase) if known else None


def from_fields(fields: Fields) -> WordPiece:
    """WordPiece from its object in tokenizer.json."""
    return WordPiece(
        read_vocabulary(fields.get("vocab", (dict, bytes)), f"{fields.where}.vocab"),
        fields.string("unk_token", "[UNK]"),
        fields.string("continuing_subword_prefix", "##"),
        fields.size("max_input_chars_per_word", 100),
    )
