"""From text to ids: the compiled lane where the stages have one, the exact stage-by-stage way for the rest and for offsets."""

from __future__ import annotations

from collections.abc import Sequence

from cygnet.tokenizers.added_tokens import AddedVocabulary
from cygnet.tokenizers.components import Model, Normalizer, PreTokenizer
from cygnet.tokenizers.encoding import Part


def well_formed(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, code point for code point."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return "".join(["�" if "\ud800" <= c <= "\udfff" else c for c in text])


class Pipeline:
    """The stages before the post-processor."""

    def __init__(self, added: AddedVocabulary, normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None, model: Model):
        self.added = added
        self.pre_tokenizer = pre_tokenizer
        self.model = model
        self.lane = model.fast_lane(normalizer, pre_tokenizer)

    def ids(self, text: str, parse_special: bool, sequence: int = 0) -> Part:
        """Ids of a text, without offsets where a compiled lane is there."""
        return self.aligned(text, parse_special, sequence)

    def ids_of_many(self, texts: Sequence[str], parse_special: bool, threads: int | None) -> list[Part]:
        return [self.ids(text, parse_special) for text in texts]

    def aligned(self, text: str, parse_special: bool, sequence: int = 0, literal: Sequence[tuple[int, int]] = ()) -> Part:
        """Ids, offsets and words of a text, stage by stage; marks inside the literal spans are text."""
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        words: list[int] = []
        word = 0
        for piece, token in self.added.segments(well_formed(text), parse_special, literal):
            if token is not None:
                ids.append(token.id)
                offsets.append(piece.original(0, len(piece)))
                words.append(word)
                word += 1
                continue
            for split in self.pre_tokenizer.split(piece) if self.pre_tokenizer else [piece]:
                for token_id, start, end in self.model.tokenize(split.text):
                    ids.append(token_id)
                    offsets.append(split.original(start, end))
                    words.append(word)
                word += 1
        return Part(ids, offsets, words)
