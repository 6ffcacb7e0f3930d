"""What a tokenizer is given, checked: OptionError says what is of no use."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Integral
from pathlib import Path
from typing import Any

from cygnet.errors import OptionError
from cygnet.tokenizers.encoding import Encoding
from cygnet.tokenizers.truncation import Padding


def as_path(path: Any) -> Path:
    """A path given as text or as an object that stands for one."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(text := os.fspath(path), str):
        raise OptionError(f"the path of a tokenizer file or folder is wanted, as text or a Path, not {path!r:.80}")
    return Path(text)


def as_text(text: Any) -> str:
    """A text as just a str, which is all that compiled code takes: of a subclass (numpy.str_, an enum's member) its characters."""
    if not isinstance(text, str):
        raise OptionError(f"a text is wanted, not {text!r:.80}")
    return text if type(text) is str else str.__str__(text)


def as_texts(texts: Any) -> tuple[str, ...]:
    """A text or a pair of texts as a tuple of one or two."""
    if isinstance(texts, str):
        return (as_text(texts),)
    if not isinstance(texts, (tuple, list)) or len(texts) != 2:
        raise OptionError(f"a text or a pair of texts is wanted, not {texts!r:.80}")
    return (as_text(texts[0]),) if texts[1] is None else (as_text(texts[0]), as_text(texts[1]))


def as_ids(ids: Any) -> list[int]:
    """Token ids as Python ints; OptionError names what is none."""
    if isinstance(ids, (str, bytes, Integral)) or not isinstance(ids, Iterable):
        raise OptionError(f"a list of token ids is wanted, not {ids!r:.80}")
    items = list(ids)
    wrong = [i for i in items if not isinstance(i, Integral) or isinstance(i, bool) or not 0 <= i < 2**63]
    if wrong:
        raise OptionError(f"{wrong[0]!r:.80} is no token id: ids are whole numbers of at least 0")
    return [int(i) for i in items]


def as_spans(spans: Any) -> list[tuple[int, int]]:
    """Ranges of a text as pairs of ints."""
    try:
        return [(int(start), int(end)) for start, end in spans]
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"literal must be a list of (start, end), not {spans!r:.80}") from None


def check_encodings(encodings: Any, rule: Any) -> list[Encoding]:
    """The encodings as a list, to be padded by the rule."""
    if not isinstance(rule, Padding):
        raise OptionError(f"a Padding is wanted, not {rule!r:.80}")
    if isinstance(encodings, Iterable):
        encodings = list(encodings)
        if all(isinstance(encoding, Encoding) for encoding in encodings):
            return encodings
    raise OptionError(f"a list of encodings is wanted, not {encodings!r:.80}")
