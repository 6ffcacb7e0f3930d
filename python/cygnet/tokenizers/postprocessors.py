"""Post-processors: special tokens around one or two encoded sequences, and offsets without the spaces of byte-level tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cygnet.errors import TokenizerError
from cygnet.records import record
from cygnet.tokenizers.byte_alphabet import SPACE_CHAR
from cygnet.tokenizers.encoding import SPECIAL, TEXT, Encoding, Part, Stretch


@record
class Special:
    """Special ids at this place of a template.

    Attributes
    ----------
    ids : tuple of int
    type_id : int, optional
    tokens : tuple of str, optional
        How they are spelled, where not as the vocabulary does.
    as_text : bool
        The special tokens mask does not count them.
    beside : int, optional
        The text or the pair beside which they stand: with its windows that truncation cut off they have the type `further_type_id`.
    further_type_id : int, optional
    """

    ids: tuple[int, ...]
    type_id: int | None
    tokens: tuple[str, ...] | None = None
    as_text: bool = False
    beside: int | None = None
    further_type_id: int | None = None

    def stretch(self, parts: list[Part]) -> Stretch:
        further = self.beside is not None and parts[self.beside].further
        type_id = self.further_type_id if further else self.type_id
        return Stretch(TEXT if self.as_text else SPECIAL, type_id or 0, None, self.tokens)


@record
class Sequence:
    """The text (0) or its pair (1) at this place of a template; type_id None keeps the type of the part.

    With `first_window`, windows that truncation cut off have `further_type_id`, or keep the type of the part, as the format's library has it.
    """

    index: int
    type_id: int | None
    first_window: bool = False
    further_type_id: int | None = None

    def type_of(self, part: Part) -> int:
        type_id = self.further_type_id if self.first_window and part.further else self.type_id
        return part.type_id if type_id is None else type_id


Template = list[Special | Sequence]

# Every white space character, and the sign that stands for the space byte.
BLANK = SPACE_CHAR + "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def further_combinations(parts: list[Part]) -> list[list[Part]]:
    """Every combination of the kept windows with the overflowing ones, but for that of the kept ones alone."""
    if len(parts) == 1:
        return [[part] for part in parts[0].overflowing]
    first, second = parts
    pairs = [[a, b] for a in first.overflowing for b in (second, *second.overflowing)]
    return [*pairs, *([first, b] for b in second.overflowing)]


def fill(template: Template, parts: list[Part], sequences: list[int | None] | None) -> Encoding:
    """One encoding from a template, the parts it names, and the sequence that each item counts to (default: a text to its own)."""
    chunks: list = []
    layout: list[Stretch] = []
    known = True
    for i, item in enumerate(template):
        if isinstance(item, Special):
            chunks.append(item.ids)
            stretch = item.stretch(parts)
        else:
            part = parts[item.index]
            known = known and part.offsets is not None
            chunks.append(part.ids)
            stretch = Stretch(TEXT, item.type_of(part), item.index)
        layout.append(stretch if sequences is None else stretch._replace(sequence=sequences[i]))
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


@record
class Block:
    """An encoding between two post-processors: of at most one sequence, with special tokens around it.

    Attributes
    ----------
    items : Template
    ranges : dict of int -> (int, int)
        Sequence ids, and the range of items that counts to each.
    """

    items: Template
    ranges: dict[int, tuple[int, int]]

    def typed(self, type_id: int) -> Block:
        """All of it of one type, but for the windows that truncation cut off."""
        beside = next((item.index for item in self.items if isinstance(item, Sequence)), None)
        return Block([retyped(item, type_id, beside) for item in self.items], self.ranges)

    def counted_as(self, sequence: int) -> Block:
        return Block(self.items, {**self.ranges, sequence: (0, len(self.items))})

    def wrapped(self, before: list[Special], behind: list[Special], sequence: int) -> Block:
        """Special tokens around it; those within count as text from here on."""
        inside = [replace(item, as_text=True) if isinstance(item, Special) else item for item in self.items]
        return Block([*before, *inside, *behind], {sequence: (len(before), len(before) + len(inside))})


def retyped(item: Special | Sequence, type_id: int, beside: int | None) -> Special | Sequence:
    if isinstance(item, Sequence):
        kept = item.further_type_id if item.first_window else item.type_id
        return replace(item, type_id=type_id, first_window=True, further_type_id=kept)
    kept = item.type_id if item.beside is None else item.further_type_id
    return replace(item, type_id=type_id, beside=beside, further_type_id=kept)


class Templated:
    """Base of the post-processors that are a template for one sequence and one for a pair."""

    single: Template = [Sequence(0, None)]
    pair: Template = [Sequence(0, None), Sequence(1, None)]

    def adjust(self, part: Part, before: int = 0) -> Part:
        """A chance to change the offsets of a part that has them; `before` special tokens of processors before this one precede it."""
        return part

    def adjusted(self, parts: list[Part], add_special_tokens: bool) -> list[Part]:
        return [self.adjust(part) for part in parts]

    def added(self, pair: bool) -> int:
        return sum(len(item.ids) for item in (self.pair if pair else self.single) if isinstance(item, Special))

    def process(self, parts: list[Part], add_special_tokens: bool) -> Encoding:
        template, sequences = self.arrangement(len(parts) == 2, add_special_tokens)

        def filled(group: list[Part]) -> Encoding:
            return fill(template, self.adjusted(group, add_special_tokens), sequences)

        encoding = filled(parts)
        if any(part.overflowing for part in parts):
            encoding.set_windows(lambda: [filled(group) for group in further_combinations(parts)])
        return encoding

    def arrangement(self, pair: bool, add_special_tokens: bool) -> tuple[Template, list[int | None] | None]:
        """The items of an encoding, and the sequence that each counts to where that is not a text's own."""
        template = self.pair if pair else self.single
        return (template if add_special_tokens else self.bare(template)), None

    def bare(self, template: Template) -> Template:
        """The template without special tokens."""
        return [item for item in template if isinstance(item, Sequence)]

    def after(self, blocks: list[Block], add_special_tokens: bool) -> list[Block]:
        """What becomes of encodings that another post-processor has made."""
        return blocks


class Plain(Templated):
    """The sequences one after the other."""


class TemplateProcessing(Templated):
    """Any sequence of special tokens and the texts."""

    def __init__(self, single: Template, pair: Template):
        self.single = single
        self.pair = pair

    def after(self, blocks: list[Block], add_special_tokens: bool) -> list[Block]:
        if len(blocks) > 2:
            raise TokenizerError(f"post_processor: a template takes one or two sequences, and those before it make {len(blocks)}")
        out = []
        for item in self.pair if len(blocks) == 2 else self.single:
            if isinstance(item, Sequence):
                block = blocks[item.index]
                out.append((block if item.type_id is None else block.typed(item.type_id)).counted_as(item.index))
            elif add_special_tokens:
                out.append(Block([item], {}))
        return out


def ended_by(token_id: int) -> TemplateProcessing:
    """A special token behind the text, or behind both texts of a pair."""
    end = Special((token_id,), None)
    return TemplateProcessing([Sequence(0, None), end], [Sequence(0, None), Sequence(1, None), end])


class BertProcessing(Templated):
    """[CLS] A [SEP] B [SEP], the second text and its mark of type 1."""

    def __init__(self, cls: int, sep: int):
        self.single = [Special((cls,), 0), Sequence(0, 0), Special((sep,), 0)]
        self.pair = [*self.single, Sequence(1, 1), Special((sep,), 1)]

    def after(self, blocks: list[Block], add_special_tokens: bool) -> list[Block]:
        if not add_special_tokens:
            return blocks
        first, *others = blocks
        cls, _, sep, *_, last = self.pair
        return [first.wrapped([cls], [sep], 0), *(block.wrapped([], [last], 1) for block in others)]

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

    def adjust(self, part: Part, before: int = 0) -> Part:
        if part.offsets is None or not self.trim_offsets:
            return part
        tokens = [part.spellings.get(i) or self.spell(token) or "" for i, token in enumerate(part.ids)]
        return replace(part, offsets=[self._trim(i, token, span) for i, (token, span) in enumerate(zip(tokens, part.offsets, strict=True), before)])

    def after(self, blocks: list[Block], add_special_tokens: bool) -> list[Block]:
        return [block.counted_as(i) for i, block in enumerate(blocks)]

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

    def after(self, blocks: list[Block], add_special_tokens: bool) -> list[Block]:
        blocks = [block.typed(0) for block in blocks]
        if not add_special_tokens:
            return blocks
        first, *others = [Block([replace(item, further_type_id=0) for item in block.items], block.ranges) for block in blocks]
        cls, _, sep = self.single
        return [first.wrapped([cls], [sep], 0), *(block.wrapped([sep], [sep], 1) for block in others)]

    def bare(self, template: Template) -> Template:
        return [replace(item, first_window=True) for item in super().bare(template)]


class Chain(Templated):
    """Several post-processors: each takes the encodings that the one before makes, and what the last makes is put together."""

    def __init__(self, processors: list[Templated]):
        self.processors = [inner for p in processors for inner in (p.processors if isinstance(p, Chain) else [p])]
        self._known: dict[tuple[bool, bool], tuple[Template, list[int | None]]] = {}
        # For each processor how many special tokens precede each part where it begins.
        self._before: dict[tuple[bool, bool], list[list[int]]] = {}

    def added(self, pair: bool) -> int:
        return sum(processor.added(pair) for processor in self.processors)

    def adjusted(self, parts: list[Part], add_special_tokens: bool) -> list[Part]:
        for processor, before in zip(self.processors, self._before[len(parts) == 2, add_special_tokens], strict=True):
            parts = [processor.adjust(part, count) for part, count in zip(parts, before, strict=True)]
        return parts

    def arrangement(self, pair: bool, add_special_tokens: bool) -> tuple[Template, list[int | None]]:
        found = self._known.get((pair, add_special_tokens))
        if found is None:
            count = 2 if pair else 1
            blocks = [Block([Sequence(i, None)], {i: (0, 1)}) for i in range(count)]
            steps: list[list[int]] = []
            for processor in self.processors:
                steps.append([marks_before(i, blocks) for i in range(count)])
                blocks = processor.after(blocks, add_special_tokens)
            self._before[pair, add_special_tokens] = steps  # first: another thread may find what is known
            found = self._known[pair, add_special_tokens] = joined(blocks)
        return found


def marks_before(index: int, blocks: list[Block]) -> int:
    """How many special tokens precede a text in its block; 0 for one that a template has left out."""
    for block in blocks:
        count = 0
        for item in block.items:
            if isinstance(item, Special):
                count += len(item.ids)
            elif item.index == index:
                return count
    return 0


def joined(blocks: list[Block]) -> tuple[Template, list[int | None]]:
    """The items of all blocks, and the sequence of each by the ranges that the blocks have, a later one's in the place of an earlier one's."""
    items: Template = []
    ranges: dict[int, tuple[int, int]] = {}
    for block in blocks:
        ranges |= {sequence: (len(items) + start, len(items) + end) for sequence, (start, end) in block.ranges.items()}
        items += block.items
    sequences: list[int | None] = [None] * len(items)
    # The library looks for as many as there are, counted from 0; one that is not there is all.
    for sequence in range(max(1, len(ranges))):
        start, end = ranges.get(sequence, (0, len(items)))
        sequences[start:end] = [sequence] * (end - start)
    return items, sequences
