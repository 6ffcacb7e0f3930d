"""Added tokens: strings that are cut out of the text before the model sees it, with the matching rules of tokenizer.json."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from cygnet._core._lane import Marks
from cygnet.tokenizers.aligned import AlignedText
from cygnet.tokenizers.components import Model, Normalizer
from cygnet.tokenizers.expressions import Expression
from cygnet.tokenizers.overlaps import Overlaps
from cygnet.tokenizers.unicode_classes import SPACE, WORD, as_unicode_16

if TYPE_CHECKING:
    import regex

WORD_CHAR = Expression(rf"[{WORD}]")
SPACES = Expression(rf"[{SPACE}]*")
ASCII_SPACES = Expression(r"[\t-\r ]*")


@dataclass(frozen=True)
class AddedToken:
    """A string with an id of its own.

    Attributes
    ----------
    content : str
    id : int
    single_word : bool
        Match only where no word character touches either side.
    lstrip, rstrip : bool
        Take the white space on that side into the token.
    ascii_spaces : bool
        Of the white space only that of ASCII.
    by_length : bool
        Found, wherever in the text, before every shorter token of this kind: where two overlap, the longer one stands.
    normalized : bool
        Look for it in the normalised text (its content normalised too) and not in the original.
    special : bool
        Left out by decode(skip_special_tokens=True), and plain text under encode(parse_special=False).
    """

    content: str
    id: int
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False
    special: bool = False
    ascii_spaces: bool = False
    by_length: bool = False

    @property
    def is_mark(self) -> bool:
        """Whether the token means something to the model beside its text: a special token, or one written as a mark (</think>, [INST])."""
        return self.special or self.content[:1] + self.content[-1:] in ("<>", "[]")


Leading = Callable[[str], AddedToken | None]


def touches_word(text: str, start: int, end: int) -> bool:
    """Whether a word character stands right before or right after the range."""
    return any(WORD_CHAR.match(as_unicode_16(char)) for char in (text[max(0, start - 1) : start], text[end : end + 1]))


class Matcher:
    """Finds the leftmost, then longest, of a set of strings; yields (start, end, token or None) that cover the text.

    White space that one token has taken in is looked through for others all the same, as the format's library does. A token that the
    normalizer leaves nothing of is never found; the library, which finds it everywhere, then comes to no end.
    """

    def __init__(self, patterns: Iterable[tuple[str, AddedToken]]):
        self.tokens: dict[str, AddedToken] = {}
        for pattern, token in patterns:
            if pattern:
                self.tokens.setdefault(pattern, token)
        self.overlaps = Overlaps([pattern for pattern, token in self.tokens.items() if token.by_length])

    @cached_property
    def find(self) -> regex.Pattern:
        import regex

        return regex.compile("|".join(map(regex.escape, sorted(self.tokens, key=len, reverse=True))))

    def split(self, text: str, is_literal: Callable[[int, int], bool] | None = None) -> list[tuple[int, int, AddedToken | None]]:
        """The text cut at added tokens; a mark whose range is literal is text."""
        if not self.tokens:
            return [(0, len(text), None)]
        out: list[tuple[int, int, AddedToken | None]] = []
        done = 0
        if self.overlaps.are_in(text):
            spans = self.overlaps.spans(text)
        else:
            spans = (match.span() for match in self.find.finditer(text, overlapped=is_literal is not None))
        for start, end in spans:
            token = self.tokens[text[start:end]]
            if start < done and (token.by_length or is_literal is not None):
                continue
            if is_literal is not None and token.is_mark and is_literal(start, end):
                continue
            if token.single_word and touches_word(text, start, end):
                continue
            spaces = ASCII_SPACES if token.ascii_spaces else SPACES
            if token.lstrip:
                while start > done and spaces.fullmatch(text[start - 1]):
                    start -= 1
                start = max(start, done)
            if token.rstrip:
                end = spaces.match(text, end).end()
            if done < start:
                out.append((done, start, None))
            if start < end:
                out.append((start, end, token))
            done = end
        if done < len(text) or not out:
            out.append((done, len(text), None))
        return out


class AddedVocabulary:
    """All added tokens of a tokenizer, and the two passes that cut them out of a text.

    Parameters
    ----------
    tokens : iterable of AddedToken
    normalizer : Normalizer or None
    leading : callable, optional
        The token that a stretch between added tokens begins with, its content as the stretch has it; None for one that begins with none.
    """

    def __init__(self, tokens: Iterable[AddedToken], normalizer: Normalizer | None, leading: Leading | None = None):
        self.tokens = list(tokens)
        self._leading = leading
        self.by_content = {t.content: t.id for t in self.tokens}
        self.special_contents = {t.content for t in self.tokens if t.special}
        self._normalizer = normalizer
        # How ids are spelled: a normalized token by what its content becomes.
        self.by_id = {t.id: self._normalized(t.content) if t.normalized else t.content for t in self.tokens}
        self._matchers = {True: self._build(self.tokens), False: self._build([t for t in self.tokens if not t.special])}

    def _build(self, tokens: list[AddedToken]) -> tuple[Matcher, Matcher]:
        ordered = sorted(tokens, key=lambda t: not t.special)
        raw = Matcher((t.content, t) for t in ordered if not t.normalized)
        normalized = Matcher((self._normalized(t.content), t) for t in ordered if t.normalized)
        return raw, normalized

    def _normalized(self, content: str) -> str:
        return self._normalizer.normalize(AlignedText.of(content)).text if self._normalizer else content

    def matchers(self, parse_special: bool) -> tuple[Matcher, Matcher]:
        """Matchers for the original and for the normalised text; without parse_special they leave special tokens alone."""
        return self._matchers[parse_special]

    def compares_bytes(self) -> bool:
        """Whether every token can be found by comparing bytes of the original text."""
        if any(matcher.overlaps.joined is None for matcher in self._matchers[True]):
            return False
        return self._leading is None and not any(t.single_word or (t.normalized and self._normalizer is not None) for t in self.tokens)

    @property
    def overlaps(self) -> Overlaps | None:
        """Overlapping tokens of which not the leftmost stands, where there may be such."""
        found = self._matchers[True][0].overlaps
        return found if found.joined else None

    def marks(self, parse_special: bool) -> list[Marks]:
        """The two passes of segments() for the compiled lane; the same one twice where it is the only one."""
        raw, normalized = (
            Marks([(pattern, t.id, t.lstrip, t.rstrip, t.ascii_spaces) for pattern, t in matcher.tokens.items()])
            for matcher in self._matchers[parse_special]
        )
        if not len(normalized):
            return [raw, raw]
        return [raw, normalized] if len(raw) else [normalized, normalized]

    def segments(self, text: str, parse_special: bool = True, literal: Sequence[tuple[int, int]] = ()) -> list[tuple[AlignedText, AddedToken | None]]:
        """The text cut at added tokens and normalised between them; marks inside the literal spans are text."""
        raw, normalized = self.matchers(parse_special)
        whole = AlignedText.of(text)
        out: list[tuple[AlignedText, AddedToken | None]] = []

        def is_literal(start: int, end: int) -> bool:
            return any(start < b and a < end for a, b in literal)

        for start, end, token in raw.split(text, is_literal if literal else None):
            piece = whole.slice(start, end)
            if token is not None:
                out.append((piece, token))
                continue
            first = self._leading(piece.text) if self._leading else None
            if first is not None:
                out.append((piece.slice(0, len(first.content)), first))
                piece = piece.slice(len(first.content), len(piece))
                if not len(piece):
                    continue
            if self._normalizer is not None:
                piece = self._normalizer.normalize(piece)
            inside = (lambda s, e, piece=piece: is_literal(*piece.original(s, e))) if literal else None
            out += [(piece.slice(s, e), inner) for s, e, inner in normalized.split(piece.text, inside) if s < e]
        return out


def id_for_new_token(content: str, model: Model, taken: dict[str, int]) -> int:
    """Id of a token added without one: the vocabulary's own if it knows the string, else the next free id."""
    if content in taken:
        return taken[content]
    known = model.token_to_id(content)
    if known is not None:
        return known
    return max([model.vocab_size - 1, *taken.values()]) + 1
