"""From text to ids: the compiled lane where the stages have one, the exact stage-by-stage way for the rest and for offsets."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import is_normalized

from cygnet._core._runner import IdArray, Runner
from cygnet._core._unicode import has_new_in_16
from cygnet.cpu_count import thread_count
from cygnet.tokenizers.added_tokens import AddedVocabulary
from cygnet.tokenizers.components import Model, Normalizer, PreTokenizer
from cygnet.tokenizers.encoding import Part
from cygnet.tokenizers.pretokenizers import NEW_NUMBERS, Digits
from cygnet.tokenizers.split_rules import flatten, without_nfc


def well_formed(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, code point for code point."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return "".join(["\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text])


class Pipeline:
    """The stages before the post-processor."""

    def __init__(self, added: AddedVocabulary, normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None, model: Model):
        self.added = added
        self.pre_tokenizer = pre_tokenizer
        self.model = model
        self.runner = self._make_runner(normalizer)
        # A byte-level lane for a tokenizer with NFC takes only text that is in that form.
        self.needs_nfc = normalizer is not None and without_nfc(normalizer) is None
        # Lanes cut out the leftmost of the added tokens.
        self.overlaps = added.overlaps
        # Lanes know Unicode 16.0; where the stages know less, they take a text with newer characters.
        self.unicode_15 = any(getattr(stage, "unicode_15", False) for stage in flatten(pre_tokenizer))
        # ... and here more.
        self.new_numbers = any(isinstance(stage, Digits) for stage in flatten(pre_tokenizer))
        self.looks_first = self.needs_nfc or self.unicode_15 or self.new_numbers or self.overlaps is not None
        # An id that only keeps symbols apart while they are merged.
        self.dropped = getattr(model, "dropped_id", None)
        # Ids that texts spell otherwise than the vocabulary: of added tokens, and of what no piece covers.
        self.uncovered = getattr(model, "unk_id", None)
        self.varied = frozenset(
            [t.id for t in added.tokens if t.lstrip or t.rstrip or t.normalized] + [self.uncovered] * (self.uncovered is not None)
        )

    def _make_runner(self, normalizer: Normalizer | None) -> Runner | None:
        """The compiled way, where the model has a lane and every added token can be found by comparing bytes."""
        lane = self.model.fast_lane(normalizer, self.pre_tokenizer)
        if lane is None or not self.added.compares_bytes():
            return None
        return Runner(lane, [self.added.marks(parse_special) for parse_special in (False, True)], self.model.vocab_size + len(self.added.by_id))

    def ids(self, text: str, parse_special: bool) -> Part:
        """Ids of a text, without offsets where a compiled lane is there."""
        if self.runner is None or self._leaves_lane(text):
            return self.aligned(text, parse_special)
        try:
            found = self.runner.ids(text, parse_special)
        except UnicodeEncodeError:
            found = self.runner.ids(well_formed(text), parse_special)
        return self._part(found, text, parse_special)

    def _part(self, found: IdArray | None, text: str, parse_special: bool) -> Part:
        """What a lane found; the stages do what it left."""
        if found is None:
            return self.aligned(text, parse_special)
        return Part(found if self.dropped is None else [i for i in found.tolist() if i != self.dropped])

    def _leaves_lane(self, text: str) -> bool:
        if self.overlaps is not None and self.overlaps.are_in(text):
            return True
        if self.new_numbers and not text.isascii() and NEW_NUMBERS.search(text):
            return True
        return (self.needs_nfc and not is_normalized("NFC", text)) or (self.unicode_15 and has_new_in_16(text))

    def ids_of_many(self, texts: list[str], parse_special: bool, threads: int | None) -> list[Part]:
        """ids() of every text, on several threads; one text takes none of them, nor the time to count them."""
        if self.runner is None or len(texts) == 1:
            return [self.ids(text, parse_special) for text in texts]
        # What the lane does not take stands in the batch as an empty text.
        apart = [i for i, text in enumerate(texts) if self._leaves_lane(text)] if self.looks_first else []
        together = texts.copy() if apart else texts
        for i in apart:
            together[i] = ""
        try:
            found = self.runner.ids_of_many(together, parse_special, thread_count(threads))
        except UnicodeEncodeError:
            found = self.runner.ids_of_many(list(map(well_formed, together)), parse_special, thread_count(threads))
        parts = [self._part(ids, text, parse_special) for ids, text in zip(found, texts, strict=True)]
        for i in apart:
            parts[i] = self.aligned(texts[i], parse_special)
        return parts

    def aligned(self, text: str, parse_special: bool, literal: Sequence[tuple[int, int]] = ()) -> Part:
        """Ids, offsets and words of a text, stage by stage; marks inside the literal spans are text."""
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        words: list[int] = []
        spellings: dict[int, str] = {}
        word = 0
        for piece, token in self.added.segments(well_formed(text), parse_special, literal):
            if token is not None:
                spellings[len(ids)] = piece.text
                ids.append(token.id)
                offsets.append(piece.original(0, len(piece)))
                words.append(word)
                word += 1
                continue
            for split in self.pre_tokenizer.split(piece) if self.pre_tokenizer else [piece]:
                for token_id, start, end in self.model.tokenize(split.text):
                    if token_id == self.uncovered:
                        spellings[len(ids)] = split.text[start:end]
                    ids.append(token_id)
                    offsets.append(split.original(start, end))
                    words.append(word)
                word += 1
        return Part(ids, offsets, words, spellings)
