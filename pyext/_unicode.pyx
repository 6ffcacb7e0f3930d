"""Unicode properties of single code points for Python callers and tests; the tokenizers' inner loops use csrc/unicode.h directly."""

from cygnet._core._unicode cimport (
    cyg_combining_class, cyg_is_bert_punctuation, cyg_is_numeric, cyg_is_space, cyg_lower, cyg_script_names, cyg_unicode_category, cyg_unicode_script,
)

CATEGORIES = tuple("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split())


def category(Py_UCS4 character):
    """General category such as "Lu" (Unicode 16.0)."""
    return CATEGORIES[cyg_unicode_category(character)]


def script(Py_UCS4 character):
    """Script name such as "Latin"; "Unknown" where there is none (Unicode 16.0)."""
    return cyg_script_names[cyg_unicode_script(character)].decode("ascii")


def combining_class(Py_UCS4 character):
    """Canonical combining class (Unicode 9.0)."""
    return cyg_combining_class(character)


def is_space(Py_UCS4 character):
    """Whether the character has the property White_Space."""
    return bool(cyg_is_space(character))


def is_numeric(Py_UCS4 character):
    """Whether the character is a number of any kind (Unicode 17.0)."""
    return bool(cyg_is_numeric(character))


def is_bert_punctuation(Py_UCS4 character):
    """Whether BERT's pre-tokenizer makes a token of its own of the character."""
    return bool(cyg_is_bert_punctuation(character))


def lower(Py_UCS4 character):
    """Full lower-case mapping of one character, a string (Unicode 17.0)."""
    return "i\u0307" if character == 0x130 else chr(cyg_lower(character))
