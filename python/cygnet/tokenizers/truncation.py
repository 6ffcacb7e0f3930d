"""Truncation and padding, as the tokenizer file or the caller asks."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral

from cygnet.errors import OptionError
from cygnet.records import record
from cygnet.tokenizers.encoding import Encoding, Part, Windows

STRATEGIES = ("longest_first", "only_first", "only_second")


@record
class Truncation:
    """No more than max_length ids, special tokens included.

    Attributes
    ----------
    max_length : int
    strategy : {"longest_first", "only_first", "only_second"}
    stride : int
        Ids that each overflow window shares with the one before.
    left : bool
        Cut at the beginning and keep the end.
    keep_overflow : bool
        Keep the windows cut off.
    """

    max_length: int
    strategy: str = "longest_first"
    stride: int = 0
    left: bool = False
    keep_overflow: bool = True

    def __post_init__(self):
        if self.strategy not in STRATEGIES:
            raise OptionError(f"truncation is {self.strategy!r:.80}; it must be one of {', '.join(STRATEGIES)}")
        for name in ("max_length", "stride"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool):
                raise OptionError(f"{name} must be a whole number, not {value!r:.80}")
        if self.max_length < 0 or self.stride < 0:
            raise OptionError(f"max_length ({self.max_length}) and stride ({self.stride}) must not be negative")


def truncate(parts: list[Part], rule: Truncation, added: int) -> list[Part]:
    """The parts cut so that they and `added` special tokens fit rule.max_length."""
    room = rule.max_length - added
    if room < 0:
        raise OptionError(f"max_length {rule.max_length} is less than the {added} special tokens; raise it or set add_special_tokens=False")
    if sum(len(p.ids) for p in parts) <= room:
        return parts
    lengths = _lengths([len(p.ids) for p in parts], room, rule.strategy)
    return [_cut(part, length, rule) for part, length in zip(parts, lengths, strict=True)]


def _lengths(lengths: list[int], room: int, strategy: str) -> list[int]:
    if room == 0:
        return [0] * len(lengths)
    if strategy == "longest_first":
        return [room] if len(lengths) == 1 else _share(*lengths, room)
    target = 0 if strategy == "only_first" else 1
    if target >= len(lengths):
        raise OptionError("truncation is 'only_second' but there is no second text")
    excess = sum(lengths) - room
    if lengths[target] <= excess:
        raise OptionError(
            f"truncation is {strategy!r}, but that text has {lengths[target]} ids and {excess} must go; use 'longest_first' or raise max_length"
        )
    lengths[target] -= excess
    return lengths


def _share(first: int, second: int, room: int) -> list[int]:
    """Room shared between two texts: the shorter one keeps all it can, both get half where neither fits."""
    short, long = sorted((first, second))
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short = room // 2
        long = short + room % 2
    return [long, short] if first > second else [short, long]


def _cut(part: Part, length: int, rule: Truncation) -> Part:
    """The part's window of `length` ids, with the further windows, each `stride` ids into the one before, as overflowing."""
    total = len(part.ids)
    if length >= total:
        return part
    if length == 0:
        kept = part.cut(0, 0)
        kept.overflowing = [replace(part, further=True)] if rule.keep_overflow else []
        return kept
    if rule.stride >= length:
        raise OptionError(f"stride {rule.stride} must be less than the {length} ids that fit a window")
    step = length - rule.stride
    if rule.left:
        windows = [(max(0, end - length), end) for end in range(total, 0, -step)]
    else:
        windows = [(start, min(total, start + length)) for start in range(0, total, step)]
    last = next(i for i, (start, end) in enumerate(windows) if (start == 0 if rule.left else end == total))
    kept = part.cut(*windows[0])
    if rule.keep_overflow:
        kept.overflowing = Windows(part, windows[1 : last + 1])
    return kept


@record
class Padding:
    """How short encodings are filled up.

    Attributes
    ----------
    length : int, optional
        Fixed length; None pads a batch to its longest.
    left : bool
    multiple : int, optional
        Round the length up to a multiple of this.
    pad_id, pad_type_id : int
    pad_token : str
    """

    length: int | None = None
    left: bool = False
    multiple: int | None = None
    pad_id: int = 0
    pad_type_id: int = 0
    pad_token: str = "[PAD]"

    def apply(self, encoding: Encoding, longest: int | None = None) -> Encoding:
        """The encoding filled up to the fixed length, or to `longest` (default: its own length)."""
        target = self.length if self.length is not None else (len(encoding) if longest is None else longest)
        if self.multiple and target % self.multiple:
            target += self.multiple - target % self.multiple
        encoding.change_windows(lambda windows: [self.apply(window, longest) for window in windows])
        missing = target - len(encoding)
        return encoding.padded(missing, self) if missing > 0 else encoding


def pad_batch(encodings: list[Encoding], rule: Padding) -> list[Encoding]:
    """Every encoding filled up by one rule."""
    longest = max((len(e) for e in encodings), default=0)
    return [rule.apply(e, longest) for e in encodings]
