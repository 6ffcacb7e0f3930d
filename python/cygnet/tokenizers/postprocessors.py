"""Post-processors: special tokens around one or two encoded sequences, and offsets without the spaces of byte-level tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cygnet.records import record
from cygnet.tokenizers.byte_alphabet import SPACE_CHAR
from cygnet.tokenizers.encoding import SPECIAL, TEXT, Encoding, Part, Stretch


@record
class Special:
    """Special ids at this place of a template."""

    ids: tuple[int, ...]
    type_id: int | None


@record
class Sequence:
    """The text (0) or its pair (1) at this place of a template; type_id None keeps the type of the part.

    With `first_window`, windows that truncation cut off keep it too, as the format's library has it.
    """

    index: int
    type_id: int | None
    first_window: bool = False

    def type_of(self, part: Part) -> int:
        return part.type_id if self.type_id is None or (self.first_window and part.further) else self.type_id


Template = list[Special | Sequence]

# Every white space character, and the sign that stands for the space byte.
BLANK = SPACE_CHAR + "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def combinations(parts: list[Part]) -> list[list[Part]]:
    """The kept windows, then every other combination of them with the overflowing ones."""
    if len(parts) == 1:
        return [[part] for part in (parts[0], *parts[0].overflowing)]
    first, second = parts
    pairs = [[a, b] for a in first.overflowing for b in (second, *second.overflowing)]
    return [[first, second], *pairs, *([first, b] for b in second.overflowing)]


def fill(template: Template, parts: list[Part]) -> Encoding:
    """One encoding from a template and the parts it names."""
    chunks: list = []
    layout: list[Stretch] = []
    known = True
    for item in template:
        if isinstance(item, Special):
            chunks.append(item.ids)
            layout.append(Stretch(SPECIAL, item.type_id or 0))
        else:
            part = parts[item.index]
            known = known and part.offsets is not None
            chunks.append(part.ids)
            layout.append(Stretch(TEXT, item.type_of(part), item.index))
    if not known:
        return Encoding(chunks, layout)
    return Encoding(chunks, layout, *_details(template, parts))


def _details(template: Template, parts: list[Part]) -> tuple[list[tuple[int, int]], list[int | None], dict[int, str]]:
    offsets: list[tuple[int, int]] = []
    words: list[int | None] = []
    spellings: dict[int, str] = {}
    for item in template:
        if isinstance(item, Special):
            offsets += [(0, 0)] * len(item.ids)
            words += [None] * len(item.ids)
        else:
            spellings |= {len(offsets) + i: spelling for i, spelling in parts[item.index].spellings.items()}
            offsets += parts[item.index].offsets
            words += parts[item.index].words
    return offsets, words, spellings


class Templated:
    """Base of the post-processors that are a template for one sequence and one for a pair."""

    single: Template = [Sequence(0, None)]
    pair: Template = [Sequence(0, None), Sequence(1, None)]

    def adjust(self, part: Part) -> Part:
        """A chance to change the offsets of a part that has them."""
        return part

    def added(self, pair: bool) -> int:
        return sum(len(item.ids) for item in (self.pair if pair else self.single) if isinstance(item, Special))

    def process(self, parts: list[Part], add_special_tokens: bool) -> Encoding:
        template = self.pair if len(parts) == 2 else self.single
        if not add_special_tokens:
            template = self.bare(template)
        if len(parts) == 1 and parts[0].offsets is None and not parts[0].overflowing:
            return fill(template, parts)
        main, *others = (fill(template, [self.adjust(part) for part in group]) for group in combinations(parts))
        main.overflowing = others
        return main

    def bare(self, template: Template) -> Template:
        """The template without special tokens."""
        return [item for item in template if isinstance(item, Sequence)]


class Plain(Templated):
    """The sequences one after the other."""


class TemplateProcessing(Templated):
    """Any sequence of special tokens and the texts."""

    def __init__(self, single: Template, pair: Template):
        self.single = single
        self.pair = pair


def ended_by(token_id: int) -> TemplateProcessing:
    """A special token behind the text, or behind both texts of a pair."""
    end = Special((token_id,), None)
    return TemplateProcessing([Sequence(0, None), end], [Sequence(0, None), Sequence(1, None), end])


class BertProcessing(Templated):
    """[CLS] A [SEP] B [SEP], the second text and its mark of type 1."""

    def __init__(self, cls: int, sep: int):
        self.single = [Special((cls,), 0), Sequence(0, 0), Special((sep,), 0)]
        self.pair = [*self.single, Sequence(1, 1), Special((sep,), 1)]

    def bare(self, template: Template) -> Template:
        return [Sequence(item.index, None) for item in template if isinstance(item, Sequence)]


class ByteLevel(Templated):
    """Offsets without the spaces at the ends of byte-level tokens.

    Parameters
    ----------
    spell : callable, id -> str
        The vocabulary's spelling of an id.
    """

    def __init__(self, spell: Callable[[int], str | None], trim_offsets: bool = True, add_prefix_space: bool = True):
        self.spell = spell
        self.trim_offsets = trim_offsets
        self.add_prefix_space = add_prefix_space

    def adjust(self, part: Part) -> Part:
        if part.offsets is None or not self.trim_offsets:
            return part
        tokens = [part.spellings.get(i) or self.spell(token) or "" for i, token in enumerate(part.ids)]
        return replace(part, offsets=[self._trim(i, token, span) for i, (token, span) in enumerate(zip(tokens, part.offsets, strict=True))])

    def _trim(self, index: int, token: str, span: tuple[int, int]) -> tuple[int, int]:
        start, end = span
        leading = len(token) - len(token.lstrip(BLANK))
        trailing = len(token) - len(token.rstrip(BLANK))
        if leading == 1 and self.add_prefix_space and (index == 0 or start == 0):
            leading = 0
        start = min(start + leading, end)
        if trailing and end >= trailing:
            end = max(end - trailing, start)
        return start, end


class RobertaProcessing(ByteLevel):
    """<s> A </s></s> B </s>, all of type 0."""

    def __init__(self, spell: Callable[[int], str | None], cls: int, sep: int, trim_offsets: bool = True, add_prefix_space: bool = True):
        super().__init__(spell, trim_offsets, add_prefix_space)
        self.single = [Special((cls,), 0), Sequence(0, 0), Special((sep,), 0)]
        self.pair = [*self.single, Special((sep,), 0), Sequence(1, 0), Special((sep,), 0)]

    def bare(self, template: Template) -> Template:
        return [replace(item, first_window=True) for item in super().bare(template)]


class Chain(Templated):
    """Several post-processors: each adjusts the offsets, the templates nest from the first to the last."""

    def __init__(self, processors: list[Templated]):
        self.processors = processors
        self.single = nest([p.single for p in processors], pair=False)
        self.pair = nest([p.pair for p in processors], pair=True)

    def adjust(self, part: Part) -> Part:
        for processor in self.processors:
            part = processor.adjust(part)
        return part


def nest(templates: list[Template], pair: bool) -> Template:
    """One template from a chain: each later one sees every sequence of the one before with the marks already around it."""
    current: dict[int, Template] = {index: [Sequence(index, None)] for index in range(2 if pair else 1)}
    for template in templates:
        current = dress(template, current)
    return [item for index in sorted(current) for item in current[index]]


def retyped(inner: Special | Sequence, item: Sequence) -> Special | Sequence:
    """What stands inside a sequence of an outer template, with the type that this one gives it."""
    more = {"first_window": item.first_window} if isinstance(inner, Sequence) else {}
    return replace(inner, type_id=item.type_id, **more)


def dress(template: Template, current: dict[int, Template]) -> dict[int, Template]:
    """Each sequence with the special tokens that the template puts before it, the last one also with those after it."""
    out: dict[int, Template] = {}
    waiting: Template = []
    last = None
    for item in template:
        if isinstance(item, Special):
            waiting.append(item)
            continue
        inner = current[item.index]
        typed = inner if item.type_id is None else [retyped(i, item) for i in inner]
        out[item.index] = [*waiting, *typed]
        waiting, last = [], item.index
    if last is not None:
        out[last] += waiting
    return out
