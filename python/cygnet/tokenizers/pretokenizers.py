"""Pre-tokenizers: each cuts normalised text into words, as tokenizer.json names them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache

from cygnet._core._unicode import bert_punctuation_set, in_unicode_9, script
from cygnet.tokenizers.aligned import AlignedText
from cygnet.tokenizers.byte_alphabet import BYTE_TO_CHAR
from cygnet.tokenizers.components import PreTokenizer
from cygnet.tokenizers.expressions import Expression
from cygnet.tokenizers.patterns import CLASS, FileExpression
from cygnet.tokenizers.splitting import ranges, runs
from cygnet.tokenizers.unicode_classes import SPACE, WORD, as_unicode_15, as_unicode_16

GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class Split:
    """Splits where a regular expression matches.

    Parameters
    ----------
    pattern : Expression
    behaviour : str
        One of splitting.BEHAVIOURS.
    invert : bool
        The delimiters are what does not match.
    source : str, optional
        The expression as the file spells it, by which a compiled scanner is chosen.
    unicode_15 : bool
        Characters that came with Unicode 16.0 are of no class.
    """

    def __init__(self, pattern: Expression, behaviour: str, invert: bool = False, source: str | None = None, unicode_15: bool = False):
        self.pattern = pattern
        self.behaviour = behaviour
        self.invert = invert
        self.source = source
        self.unicode_15 = unicode_15

    @cached_property
    def by_class(self) -> bool:
        """Whether it has classes: without them it means code points, whatever they are assigned to."""
        return self.source is None or CLASS.search(self.source) is not None

    def split(self, text: AlignedText) -> list[AlignedText]:
        known = text.text
        if self.by_class:
            known = as_unicode_15(known) if self.unicode_15 else as_unicode_16(known)
        return self.split_as(text, known)

    def split_as(self, text: AlignedText, known: str) -> list[AlignedText]:
        """The text split where its stand-in of the same length matches."""
        return list(text.slices(ranges(runs(len(text), self.pattern.spans(known), self.invert), self.behaviour)))


def whitespace_words() -> Split:
    """Runs of word characters, and runs of anything else that is no space."""
    return Split(Expression(rf"[{WORD}]+|[^{WORD}{SPACE}]+"), "Removed", invert=True)


def whitespace_split() -> Split:
    """What stands between white space."""
    return Split(Expression(rf"[{SPACE}]"), "Removed")


@lru_cache(maxsize=1)
def punctuation_pattern() -> Expression:
    """One character that counts as punctuation: ASCII symbols, and the categories P as Unicode 8.0 had them."""
    return Expression(f"[{bert_punctuation_set()}]")


def punctuation(behaviour: str = "Isolated") -> Split:
    return Split(punctuation_pattern(), behaviour)


# Numbers that came with Unicode 17.0: Digits knows them, the regular expressions of the format do not.
NEW_NUMBERS = Expression("[\U00011de0-\U00011de9\U00016ff4-\U00016ff6]")


class Digits(Split):
    """Digits apart from everything else, one by one or in runs."""

    def __init__(self, individual: bool = False):
        super().__init__(Expression(r"\p{N}"), "Isolated" if individual else "Contiguous", source=r"\p{N}")

    def split(self, text: AlignedText) -> list[AlignedText]:
        return self.split_as(text, as_unicode_16(NEW_NUMBERS.sub("1", text.text)))


def char_delimiter(delimiter: str) -> Split:
    return Split(Expression(delimiter, literal=True), "Removed")


def literal(content: str, behaviour: str, invert: bool = False) -> Split:
    """Split at a literal string; an empty one never matches."""
    return Split(Expression(content, literal=True) if content else Expression(r"(?!)"), behaviour, invert)


class Sequence:
    """Several pre-tokenizers, each splitting the words of the one before."""

    def __init__(self, stages: Iterable[PreTokenizer]):
        self.stages = list(stages)

    def split(self, text: AlignedText) -> list[AlignedText]:
        words = [text]
        for stage in self.stages:
            words = [part for word in words for part in stage.split(word)]
        return words


class BertPreTokenizer(Sequence):
    """White space out, every punctuation character a word of its own."""

    def __init__(self):
        super().__init__([whitespace_split(), punctuation("Isolated")])


class ByteLevel:
    """Bytes spelled in GPT-2's alphabet, by default after GPT-2's split."""

    def __init__(self, add_prefix_space: bool = True, use_regex: bool = True):
        self.add_prefix_space = add_prefix_space
        self.use_regex = use_regex
        self._split = Split(FileExpression(GPT2_PATTERN), "Isolated", source=GPT2_PATTERN)

    def split(self, text: AlignedText) -> list[AlignedText]:
        if self.add_prefix_space and not text.text.startswith(" "):
            text = text.prepend(" ")
        words = self._split.split(text) if self.use_regex else [text]
        return [word.map(spell_bytes) for word in words]


@lru_cache(maxsize=4096)
def spell_bytes(char: str) -> str:
    """The bytes of a character in GPT-2's alphabet."""
    return "".join([BYTE_TO_CHAR[b] for b in char.encode()])


class Metaspace:
    """Spaces become a visible sign, which also begins a text; words start at the sign.

    Parameters
    ----------
    replacement : str
        The sign, one character.
    prepend_scheme : {"always", "first", "never"}
        Put the sign before every stretch of text, only before one that begins the whole text, or nowhere.
    split : bool
    """

    def __init__(self, replacement: str = "▁", prepend_scheme: str = "always", split: bool = True):
        self.replacement = replacement
        self.prepend_scheme = prepend_scheme
        self.cut = split
        self._split = literal(replacement, "MergedWithNext")

    def split(self, text: AlignedText) -> list[AlignedText]:
        spaced = text.respelled(text.text.replace(" ", self.replacement))
        wanted = self.prepend_scheme == "always" or (self.prepend_scheme == "first" and text.start == 0)
        if wanted and not spaced.text.startswith(self.replacement):
            spaced = spaced.prepend(self.replacement)
        return self._split.split(spaced) if self.cut else [spaced]


class FixedLength:
    """Words of a fixed number of characters."""

    def __init__(self, length: int):
        self.length = length

    def split(self, text: AlignedText) -> list[AlignedText]:
        return [text.slice(i, i + self.length) for i in range(0, len(text), self.length)]


class UnicodeScripts:
    """A new word where the script changes; kana count as Han, spaces go with what precedes them."""

    def split(self, text: AlignedText) -> list[AlignedText]:
        starts: list[int] = []
        last = None
        for i, char in enumerate(text.text):
            script = script_of(char)
            if script is None:
                continue
            if script != last:
                starts.append(i)
            last = script
        return list(text.slices(zip(starts, [*starts[1:], len(text)], strict=False)))


# These had no script of their own in Unicode 9.0.
SCRIPT_CHANGED = "\u0589\u061c"


def script_of(char: str) -> str | None:
    """Script of a character as UnicodeScripts counts it; None for the space and what is not assigned in Unicode 9.0."""
    if char == " " or not in_unicode_9(char):
        return None
    name = script(char)
    if char == "ー" or name in ("Hiragana", "Katakana"):
        return "Han"
    if char in SCRIPT_CHANGED:
        return "Common"
    return None if name == "Unknown" else name
