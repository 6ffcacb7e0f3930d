"""Character classes of the format's reference libraries, spelled for the `regex` package (insides of a [...] set).

The reference knows Unicode 16.0. The regex package may be newer, so text is shown to it with the characters that came later replaced.
"""

from __future__ import annotations

from functools import lru_cache

from cygnet._core._unicode import has_new_in_16, is_new_in_16, unassigned_ranges
from cygnet.tokenizers.expressions import Expression

# White_Space property: what \s means to the reference; the regex package's own \s would add U+001C to U+001F.
SPACE = r"\t-\r \x85\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000"
# \w of UTS #18; as Oniguruma has it inside a set; and as it has it alone and at \b.
WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}"
ONIGURUMA_SET_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
ONIGURUMA_WORD = ONIGURUMA_SET_WORD + r"\xB2\xB3\xB9\xBC-\xBE"

_NEVER_ASSIGNED = "\u0378"
# A letter whose category Unicode 17.0 changed, and one of the category it had.
_CHANGED = {"\u0295": "\u0250"}


@lru_cache(maxsize=1)
def _later() -> Expression:
    ranges = "".join(rf"\U{first:08X}-\U{last:08X}" for first, last in unassigned_ranges())
    return Expression(f"[{ranges}{''.join(_CHANGED)}]")


def as_unicode_16(text: str) -> str:
    """The text with each character that Unicode 16.0 does not know, or knows differently, replaced by one of the category it had."""
    if text.isascii():
        return text
    return _later().sub(lambda m: _CHANGED.get(m.group(), _NEVER_ASSIGNED), text)


def as_unicode_15(text: str) -> str:
    """as_unicode_16(), and what came with 16.0 replaced by a character that is not assigned: llama.cpp knows Unicode 15.1."""
    text = as_unicode_16(text)
    return "".join([_NEVER_ASSIGNED if is_new_in_16(c) else c for c in text]) if has_new_in_16(text) else text
