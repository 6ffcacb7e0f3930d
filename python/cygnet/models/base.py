"""What every loaded model has: its spec, its engine, its tokenizer, and the ways from text to ids."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from cygnet.architectures.spec import ModelSpec
from cygnet.errors import ContextOverflow, CopyError, ModelClosed, OptionError, TokenizerError
from cygnet.models.aliases import Ids, Text

if TYPE_CHECKING:
    from cygnet.models.inspection import Inspection
    from cygnet.tokenizers.tokenizer import Tokenizer

logger = logging.getLogger("cygnet")

M = TypeVar("M", bound="Model")


@dataclass(frozen=True)
class Parts:
    """What a model is put together from.

    Attributes
    ----------
    spec : ModelSpec
    engine : Engine
        Runs forward passes; see cygnet.generation.engine_protocol.
    tokenizer : Tokenizer or None
        None for a checkpoint without tokenizer files: such a model takes token ids only.
    source : Path
        The folder or file it was loaded from.
    config : dict
        config.json, or the GGUF metadata in its place.
    max_context : int or None
        Longest sequence in tokens; None where neither the model nor the caller sets one.
    views : dict of str to WeightView
        The stored tensors, which `inspect` reads again.
    draft : Engine or None
        A smaller model that proposes tokens to this one.
    """

    spec: ModelSpec
    engine: Any
    tokenizer: Any = None
    source: Path = Path()
    config: dict = field(default_factory=dict)
    max_context: int | None = None
    views: dict = field(default_factory=dict)
    draft: Any = None


class Model:
    """Base of the public classes; made by `cygnet.load`. A context manager that frees the model's memory."""

    def __init__(self, parts: Parts):
        self.spec = parts.spec
        self.engine = parts.engine
        self.source = parts.source
        self.config = parts.config
        self.max_context = parts.max_context
        self._tokenizer = parts.tokenizer
        self.views = parts.views

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer.

        Raises
        ------
        TokenizerError
            The checkpoint has no tokenizer files.
        """
        if self._tokenizer is None:
            raise TokenizerError(f"{self.source} holds no tokenizer (tokenizer.json, vocab.txt, ...): give token ids instead of text")
        return self._tokenizer

    @property
    def folder(self) -> Path:
        """The folder that small files of the model lie in."""
        return self.source if self.source.is_dir() else self.source.parent

    def count_tokens(self, text: str) -> int:
        """Number of tokens that the model sees for a text, special ones included."""
        return len(self.encode_text(text))

    def encode_text(self, text: Text, *, add_special_tokens: bool = True, parse_special: bool = True) -> list[int]:
        """Token ids of a text; token ids are checked and handed back as a list.

        Raises
        ------
        OptionError
            Neither text nor token ids, or ids outside of the vocabulary.
        """
        if isinstance(text, str):
            return list(self.tokenizer.encode(text, add_special_tokens=add_special_tokens, parse_special=parse_special).ids)
        return self.check_ids(text)

    def check_ids(self, ids: Ids) -> list[int]:
        """Token ids as a list of Python ints, each inside the vocabulary."""
        if not is_ids(ids):
            raise OptionError(f"text or a list of token ids is wanted, not {ids!r:.80}")
        checked = [int(token) for token in ids]
        wrong = next((token for token in checked if not 0 <= token < self.spec.vocab_size), None)
        if wrong is not None:
            raise OptionError(f"token id {wrong} is outside of the vocabulary of {self.spec.vocab_size}")
        return checked

    def check_length(self, length: int, what: str = "the prompt") -> None:
        """Raises ContextOverflow where a sequence is longer than the model's context."""
        if self.max_context is not None and length > self.max_context:
            raise ContextOverflow(f"{what} has {length} tokens, the model's context is {self.max_context}: shorten it")

    def inspect(self, text: Text, *, decoder: Text | None = None) -> Inspection:
        """What happens inside the model as it reads a text: states and attention weights of every layer.

        Runs the plain NumPy reference on the stored weights, a second copy of the model in float32: for looking, not for speed.

        Parameters
        ----------
        text : str, or list of int
            Token ids are read as they are.
        decoder : the same, optional
            What the decoder of an encoder-decoder model reads behind its start token.

        Returns
        -------
        Inspection
        """
        from cygnet.models.inspection import inspect

        return inspect(self, text, decoder)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return isinstance(self.engine, _ClosedEngine)

    def check_open(self) -> None:
        """Raises ModelClosed behind `close`."""
        if self.closed:
            raise ModelClosed(f"the model from {self.source} is closed: load it again")

    def close(self) -> None:
        """Frees the weights and caches; the model cannot be used afterwards."""
        self.engine = _ClosedEngine()
        self.views = {}

    def __reduce_ex__(self, protocol):
        """Refuses copies and pickles: two objects would share one engine, and threads and mapped weights cannot be sent anywhere."""
        raise CopyError(f"a loaded model cannot be copied or pickled: load it where it is needed, with cygnet.load({str(self.source)!r})")

    def __enter__(self: M) -> M:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        context = "" if self.max_context is None else f", context {self.max_context}"
        return f"<{type(self).__name__} {self.spec.family} from {self.source}{context}>"


class _ClosedEngine:
    """Stands where the engine of a closed model was."""

    def __getattr__(self, name):
        raise ModelClosed("the model is closed: load it again")


def is_ids(value) -> bool:
    """Whether a value is a sequence of whole numbers (an empty list counts)."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and (value.dtype.kind in "iu" or value.size == 0)
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        return False
    return all(isinstance(v, Integral) and not isinstance(v, bool) for v in value)


def is_iterable(value) -> bool:
    """Whether a value has items: an array without dimensions looks as if it had."""
    return isinstance(value, Iterable) and not (isinstance(value, np.ndarray) and value.ndim == 0)


def is_single(value) -> bool:
    """Whether a value is one text or one list of ids, and not a batch; an empty list is an empty batch."""
    return isinstance(value, str) or (is_ids(value) and len(value) > 0)


def as_batch(value, what: str = "texts") -> list:
    """One text or list of ids, or an iterable of them, as a list.

    Raises
    ------
    OptionError
        Something else.
    """
    if is_single(value):
        return [value]
    if not is_iterable(value) or isinstance(value, (bytes, dict, set, frozenset)):
        raise OptionError(f"{what}: text, token ids, or a list of these is wanted, not {value!r:.80}")
    items = list(value)
    for index, item in enumerate(items):
        if not isinstance(item, str) and not is_ids(item):
            pair = isinstance(item, (tuple, list)) and len(item) == 2 and all(isinstance(text, str) for text in item)
            hint = "; second texts of pairs are an argument of their own, pairs=[...]" if pair else ""
            raise OptionError(f"{what}: item {index} is {item!r:.80}; text or a list of token ids is wanted{hint}")
    return items


def as_rows(ids) -> list:
    """One list of ids, or several, as a list of them; OptionError for something else. What is in a row is for `Model.check_ids` to say."""
    if is_ids(ids):
        return [ids]
    if isinstance(ids, (str, bytes, dict)) or not is_iterable(ids):
        raise OptionError(f"token ids are wanted, or lists of them, not {ids!r:.80}")
    return list(ids)


def token_batches(lengths: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Indices grouped so that a group has at most `limit` tokens (one longer sequence stands alone), longest first.

    Sequences of like length share a group, so that its workers finish together.
    """
    group: list[int] = []
    total = 0
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if group and total + lengths[index] > limit:
            yield group
            group, total = [], 0
        group.append(index)
        total += lengths[index]
    if group:
        yield group
