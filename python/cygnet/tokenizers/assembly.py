"""From the ids of texts to an Encoding: truncation, special tokens, and where to look for what only the exact stages know."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cygnet.tokenizers.components import PostProcessor
from cygnet.tokenizers.encoding import Encoding, Part
from cygnet.tokenizers.pipeline import Pipeline
from cygnet.tokenizers.truncation import Truncation, truncate


class Assembly:
    """How the encodings of one call come about; what is changed in the tokenizer later does not change them.

    Parameters
    ----------
    pipeline : Pipeline
    processor : PostProcessor
    name : callable, id -> str
        The vocabulary's spelling of an id.
    rule : Truncation, optional
    add_special_tokens, parse_special : bool
        As given to encode.
    """

    __slots__ = ("add_special_tokens", "name", "parse_special", "pipeline", "processor", "rule")

    def __init__(
        self,
        pipeline: Pipeline,
        processor: PostProcessor,
        name: Callable[[int], str | None],
        rule: Truncation | None,
        add_special_tokens: bool,
        parse_special: bool,
    ):
        self.pipeline = pipeline
        self.processor = processor
        self.name = name
        self.rule = rule
        self.add_special_tokens = add_special_tokens
        self.parse_special = parse_special

    def encoding(self, parts: list[Part], *texts: str) -> Encoding:
        """The encoding of one text or of two, from their parts."""
        if len(parts) == 2:
            parts[1].type_id = 1
        lazy = parts[0].offsets is None or parts[-1].offsets is None
        if self.rule is not None:
            parts = truncate(parts, self.rule, self.processor.added(len(parts) == 2) if self.add_special_tokens else 0)
        encoding = self.processor.process(parts, self.add_special_tokens)
        encoding.attach(self.name, self.pipeline.varied, partial(self.in_detail, *texts) if lazy else None)
        return encoding

    def in_detail(self, *texts: str) -> Encoding:
        """The same encoding by the exact stages, with offsets and words."""
        return self.encoding([self.pipeline.aligned(text, self.parse_special) for text in texts], *texts)

    def later(self, part: Part, text: str) -> Encoding:
        """An encoding that is put together when it is looked at, where nothing that is said here can be refused."""
        return Encoding.later(self.encoding, part, text) if self.rule is None else self.encoding([part], text)
