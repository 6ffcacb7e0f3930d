"""The result of encoding: ids at once, everything else when it is asked for.

The compiled lane gives ids only. Masks and type ids follow from the layout (which stretch is text, special or padding); offsets and
word ids need the slower exact pipeline, which runs the first time one of them is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cygnet._core._runner import IdArray

if TYPE_CHECKING:
    from cygnet.tokenizers.truncation import Padding

TEXT, SPECIAL, PAD = "text", "special", "pad"


@dataclass(slots=True)
class Part:
    """One encoded sequence before special tokens: ids, and where known the range and the word of each.

    Attributes
    ----------
    ids : IdArray or list of int
    offsets : list of (int, int), optional
    words : list of int, optional
    spellings : dict of int -> str, optional
        By position, how the text spells an added token (with the spaces it took in) or what no piece covers.
    type_id : int
    further : bool
        A window after the first that truncation keeps.
    overflowing : sequence of Part
        The further windows, which may be made when they are looked at.
    """

    ids: IdArray | list[int]
    offsets: list[tuple[int, int]] | None = None
    words: list[int] | None = None
    spellings: dict[int, str] | None = None
    type_id: int = 0
    further: bool = False
    overflowing: Sequence[Part] = ()

    def cut(self, start: int, end: int) -> Part:
        offsets = None if self.offsets is None else self.offsets[start:end]
        words = None if self.words is None else self.words[start:end]
        spellings = None if self.spellings is None else {i - start: s for i, s in self.spellings.items() if start <= i < end}
        return Part(listed(self.ids)[start:end], offsets, words, spellings, self.type_id)


def listed(ids: IdArray | list[int] | tuple[int, ...]) -> list[int]:
    return ids if isinstance(ids, list) else ids.tolist() if isinstance(ids, IdArray) else list(ids)


def no_windows() -> list[Encoding]:
    return []


class Windows(Sequence[Part]):
    """Further windows of a part, each cut when it is looked at.

    Parameters
    ----------
    whole : Part
    spans : sequence of (int, int)
    """

    def __init__(self, whole: Part, spans: Sequence[tuple[int, int]]):
        self._whole = whole
        self._spans = spans

    def __len__(self) -> int:
        return len(self._spans)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return Windows(self._whole, self._spans[index])
        self._whole.ids = listed(self._whole.ids)
        window = self._whole.cut(*self._spans[index])
        window.further = True
        return window


class Stretch(NamedTuple):
    """What a chunk of ids is: TEXT (of sequence 0 or 1), SPECIAL or PAD."""

    kind: str
    type_id: int = 0
    sequence: int | None = None
    tokens: tuple[str, ...] | None = None  # how they are spelled, where not as the vocabulary does


class Encoding:
    """Ids of a text and, on demand, what each id stands for.

    Attributes
    ----------
    ids : list of int
    tokens : list of str
        The vocabulary's spelling of each id; the text's for added tokens that take in spaces and for what no Unigram piece covers.
    offsets : list of (int, int)
        Start and end of each token in code points of the text that was encoded; (0, 0) for special tokens and padding.
    word_ids : list of (int or None)
        Index of the word, as the pre-tokenizer cut it, that the token belongs to; None for special tokens and padding.
    sequence_ids : list of (int or None)
        0 for tokens of the text, 1 for tokens of its pair, None for special tokens and padding.
    type_ids, attention_mask, special_tokens_mask : list of int
    """

    __slots__ = ("_chunks", "_detail", "_ids", "_layout", "_name", "_offsets", "_spellings", "_varied", "_waits", "_windows", "_words")

    def __init__(
        self,
        chunks: list[IdArray | list[int] | tuple[int, ...]],
        layout: list[Stretch],
        offsets: list[tuple[int, int]] | None = None,
        words: list[int | None] | None = None,
        spellings: dict[int, str] | None = None,
    ):
        self._chunks = chunks
        self._layout = layout  # a stretch for each chunk
        self._ids: list[int] | None = None
        self._windows: Callable[[], list[Encoding]] = no_windows
        self._offsets = offsets
        self._words = words
        self._spellings = spellings
        self._varied: frozenset[int] = frozenset()
        self._name: Callable[[int], str | None] = str
        self._detail: Callable[[], Encoding] | None = None

    @classmethod
    def later(cls, assemble: Callable[..., Encoding], part: Part, text: str) -> Encoding:
        """The encoding that assemble([part], text) gives, which is asked when the first of its fields is read."""
        self = object.__new__(cls)
        self._waits = assemble, part, text
        return self

    def __getattr__(self, name: str) -> Any:
        """A field that is not there yet: all of them are fetched."""
        if name not in FIELDS:
            raise AttributeError(f"an Encoding has no attribute {name!r}", name=name, obj=self)
        assemble, part, text = self._waits
        made = assemble([part], text)
        for field in FIELDS:
            setattr(self, field, getattr(made, field))
        return getattr(self, name)

    def __len__(self) -> int:
        return sum([len(chunk) for chunk in self._chunks])

    def __repr__(self) -> str:
        return f"Encoding({len(self)} ids)"

    def attach(self, name: Callable[[int], str | None], varied: frozenset[int], detail: Callable[[], Encoding] | None) -> None:
        """Tells the encoding, and its overflowing ones, how to spell ids, which ids texts spell differently, and how to find the rest."""
        self._name = name
        self._varied = varied
        if self._windows is no_windows:
            self._detail = detail
            return
        self._detail = whole = detail and cache(detail)

        def attached(windows: list[Encoding]) -> list[Encoding]:
            for i, window in enumerate(windows):
                window.attach(name, varied, whole and (lambda i=i: whole().overflowing[i]))
            return windows

        self.change_windows(attached)

    @property
    def overflowing(self) -> list[Encoding]:
        """The windows that truncation cut off, where asked for; they are put together when they are looked at."""
        return self._windows()

    def set_windows(self, make: Callable[[], list[Encoding]]) -> None:
        """Says how the overflowing windows are made."""
        self._windows = cache(make)

    def change_windows(self, change: Callable[[list[Encoding]], list[Encoding]]) -> None:
        """Has the overflowing windows changed when they are made."""
        make = self._windows
        if make is not no_windows:
            self.set_windows(lambda: change(make()))

    def padded(self, missing: int, rule: Padding) -> Encoding:
        """This encoding with `missing` pad tokens on the side that the rule names."""
        pad, ids = [Stretch(PAD, rule.pad_type_id, tokens=(rule.pad_token,) * missing)], [(rule.pad_id,) * missing]
        out = Encoding(ids + self._chunks, pad + self._layout) if rule.left else Encoding(self._chunks + ids, self._layout + pad)
        out._windows = self._windows
        out._name, out._varied = self._name, self._varied
        out._detail = lambda: self._padded_detail(missing, rule.left)
        return out

    def _padded_detail(self, missing: int, left: bool) -> Encoding:
        offsets, words = [(0, 0)] * missing, [None] * missing
        if left:
            return Encoding([], [], offsets + self.offsets, words + self.word_ids, {i + missing: s for i, s in self.spellings.items()})
        return Encoding([], [], self.offsets + offsets, self.word_ids + words, self.spellings)

    @property
    def ids(self) -> list[int]:
        """Token ids, special tokens included."""
        if self._ids is None:
            first, *others = self._chunks or ([],)
            out = first.tolist() if isinstance(first, IdArray) else list(first)
            for chunk in others:
                out += listed(chunk)
            self._ids = out
        return self._ids

    def _spread(self, value: Callable[[Stretch], object]) -> list:
        out: list = []
        for stretch, chunk in zip(self._layout, self._chunks, strict=True):
            out += [value(stretch)] * len(chunk)
        return out

    @property
    def tokens(self) -> list[str]:
        """Each token as the vocabulary spells it; as the text does where it takes in spaces or no piece covers it."""
        out = [self._name(i) or "" for i in self.ids]
        at = 0
        for stretch, chunk in zip(self._layout, self._chunks, strict=True):
            if stretch.tokens is not None:
                out[at : at + len(chunk)] = stretch.tokens
            at += len(chunk)
        if not self._varied.isdisjoint(self.ids):
            for i, spelling in self.spellings.items():
                out[i] = spelling
        return out

    @property
    def spellings(self) -> dict[int, str]:
        """By position, the tokens that the text spells otherwise than the vocabulary."""
        if self._spellings is None:
            self._fetch_detail()
        return self._spellings

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Where each token stands in the text it is of, in code points: (start, end)."""
        if self._offsets is None:
            self._fetch_detail()
        return self._offsets

    @property
    def word_ids(self) -> list[int | None]:
        """The word of its text that each token belongs to, counted from 0; None for special tokens."""
        if self._words is None:
            self._fetch_detail()
        return self._words

    @property
    def sequence_ids(self) -> list[int | None]:
        """0 for tokens of the text, 1 for those of the pair, None for special tokens."""
        return self._spread(lambda s: s.sequence)

    @property
    def type_ids(self) -> list[int]:
        """Token types (segments), which models that read pairs add to their embeddings."""
        return self._spread(lambda s: s.type_id)

    @property
    def attention_mask(self) -> list[int]:
        """1 for tokens, 0 for padding."""
        return self._spread(lambda s: int(s.kind != PAD))

    @property
    def special_tokens_mask(self) -> list[int]:
        """1 for special tokens and padding, 0 for tokens of the text."""
        return self._spread(lambda s: int(s.kind != TEXT))

    def _fetch_detail(self) -> None:
        full = self._detail() if self._detail else self
        self._offsets = full._offsets if full._offsets is not None else [(0, 0)] * len(self)
        self._words = full._words if full._words is not None else [None] * len(self)
        self._spellings = full._spellings or {}
        self._detail = None


# Set together, when an encoding is made or first looked at.
FIELDS = frozenset(Encoding.__slots__) - {"_waits"}
