"""Language marks of multilingual translation models: where each family puts them, and how a language is named.

NLLB, M2M-100 and mBART-50 read the source language's mark in front and are made to start their answer with the target's; the first mBART puts
the mark behind and starts its decoder from the target's mark. Sources: Fan et al. 2020, Tang et al. 2020, Costa-jussà et al. 2022, Liu et al. 2020,
and the model cards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cygnet.errors import OptionError

_CODE = re.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}|__[a-z]{2,8}__")


@dataclass(frozen=True)
class Languages:
    """The language marks of one model.

    Attributes
    ----------
    ids : dict of str to int
        Mark to token id, as the vocabulary spells it.
    behind : bool
        Whether a source text has its mark behind the end token instead of in front (first mBART, early NLLB).
    starts_decoder : bool
        Whether the decoder starts from the target's mark itself (first mBART) instead of being forced to produce it first.
    """

    ids: dict[str, int]
    behind: bool = False
    starts_decoder: bool = False

    @property
    def codes(self) -> list[str]:
        """Names of the languages, without the marks' brackets."""
        return sorted(_bare(mark) for mark in self.ids)

    def id_of(self, language: str, what: str) -> int:
        """Token id of a language named by its mark, its code, or a code that only one mark begins with.

        Raises
        ------
        OptionError
            No language, or several, of that name; lists all.
        """
        exact = [mark for mark in self.ids if language in (mark, _bare(mark))]
        similar = exact or [mark for mark in self.ids if _bare(mark).lower().split("_")[0] == language.lower()]
        if len(similar) == 1:
            return self.ids[similar[0]]
        problem = f"may be {' or '.join(map(_bare, similar))}" if similar else "is not known"
        raise OptionError(f"{what} {language!r} {problem}; languages are {', '.join(self.codes)}")


def find_languages(tokens: Iterable[tuple[str, int]], tokenizer_class: str, legacy: bool = False) -> Languages | None:
    """The language marks among a tokenizer's added tokens; None for a model without any.

    Parameters
    ----------
    tokens : iterable of (str, int)
        Added tokens and their ids.
    tokenizer_class : str
        As tokenizer_config.json names it.
    legacy : bool
        Whether an NLLB tokenizer asks for its early behaviour.
    """
    ids = {token: index for token, index in tokens if _CODE.fullmatch(token)}
    if not ids:
        return None
    name = tokenizer_class.removesuffix("Fast").removesuffix("Tokenizer").lower()
    first_mbart = name == "mbart"
    return Languages(ids, behind=first_mbart or (legacy and name == "nllb"), starts_decoder=first_mbart)


def _bare(mark: str) -> str:
    return mark.removeprefix("__").removesuffix("__")
