"""Unicode properties, normalisation forms and grapheme clusters for Python callers; inner loops use csrc/unicode.h directly."""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from cygnet._core._unicode cimport (
    cyg_combining_class, cyg_compose, cyg_decompose, cyg_grapheme_begins, cyg_grapheme_state, cyg_is_bert_accent,
    cyg_is_bert_control, cyg_is_bert_ideograph, cyg_is_bert_punctuation, cyg_is_mark_9, cyg_is_new_in_16, cyg_is_numeric, cyg_is_space, cyg_lower,
    cyg_script_names, cyg_unicode_category, cyg_unicode_class, cyg_unicode_script,
)

CATEGORIES = tuple("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split())


def category(Py_UCS4 character):
    """General category such as "Lu" (Unicode 16.0)."""
    return CATEGORIES[cyg_unicode_category(character)]


def script(Py_UCS4 character):
    """Script name such as "Latin"; "Unknown" where there is none (Unicode 16.0)."""
    return cyg_script_names[cyg_unicode_script(character)].decode("ascii")


def in_unicode_9(Py_UCS4 character):
    """Whether the character is assigned in Unicode 9.0."""
    cdef unsigned k = cyg_unicode_class(character)
    return (k & 31) != 0 and (k >> 5 & 3) <= 1


def is_new_in_16(Py_UCS4 character):
    """Whether the character came with Unicode 16.0."""
    return bool(cyg_is_new_in_16(character))


def has_new_in_16(str text):
    """Whether a character of the text came with Unicode 16.0."""
    cdef Py_UCS4 character
    if text.isascii():
        return False
    for character in text:
        if character > 0x896 and cyg_is_new_in_16(character):
            return True
    return False


def unassigned_ranges():
    """(first, last) of every range of code points that Unicode 16.0 does not assign."""
    cdef uint32_t c, first = 0
    cdef bint inside = False
    cdef list out = []
    for c in range(0x110000):
        if (cyg_unicode_class(c) & 31) == 0:
            if not inside:
                first, inside = c, True
        elif inside:
            out.append((first, c - 1))
            inside = False
    if inside:
        out.append((first, 0x10FFFF))
    return out


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


def bert_punctuation_set():
    """Every character of is_bert_punctuation() as the inside of a regular expression's [...]."""
    cdef uint32_t code, start
    cdef list out = []
    code = 0
    while code < 0x110000:
        start = code
        while code < 0x110000 and cyg_is_bert_punctuation(code):
            code += 1
        if code > start:
            out.append(f"\\U{start:08X}-\\U{code - 1:08X}")
        code += 1
    return "".join(out)


def lower(Py_UCS4 character):
    """Full lower-case mapping of one character, a string (Unicode 17.0)."""
    return "i\u0307" if character == 0x130 else chr(cyg_lower(character))


def is_bert_accent(Py_UCS4 character):
    """Whether BERT's accent stripping drops the character after NFD."""
    return bool(cyg_is_bert_accent(character))


def is_bert_control(Py_UCS4 character):
    """Whether BERT's text cleaning drops the character."""
    return bool(cyg_is_bert_control(character))


def is_bert_ideograph(Py_UCS4 character):
    """Whether BERT puts spaces around the character."""
    return bool(cyg_is_bert_ideograph(character))


def is_mark(Py_UCS4 character):
    """Whether the character is a combining mark of any kind (Unicode 9.0)."""
    return bool(cyg_is_mark_9(character))


cdef list sorted_by_class(list pending):
    """Canonical ordering: a stable sort of (combining class, character, change) by the class, classes taken off."""
    pending.sort(key=first_of)
    return [(character, change) for _, character, change in pending]


def first_of(item):
    return item[0]


def decompose(str text, bint compatibility):
    """Canonical (NFD) or compatibility (NFKD) decomposition with its alignment.

    Parameters
    ----------
    text : str
    compatibility : bool

    Returns
    -------
    list of (str, int)
        Characters of the result; the number is 0 for the first character that replaces one of the text and 1 for those after it.
    """
    cdef uint32_t parts[18]
    cdef Py_UCS4 character
    cdef int n, i
    cdef unsigned combining
    cdef list out = [], pending = []
    for character in text:
        n = cyg_decompose(character, compatibility, parts)
        for i in range(n):
            combining = cyg_combining_class(parts[i])
            if combining == 0 and pending:
                out += sorted_by_class(pending)
                pending = []
            if combining == 0:
                out.append((chr(parts[i]), i > 0))
            else:
                pending.append((combining, chr(parts[i]), int(i > 0)))
    return out + sorted_by_class(pending) if pending else out


def compose(list decomposed):
    """Canonical composition (the C of NFC and NFKC) of what decompose() returned.

    Returns
    -------
    list of (str, int)
        As decompose(); -n says that the character also replaces the n characters of the text after its own.
    """
    cdef list out = [], blocked = []
    cdef Py_UCS4 base = 0, character, composite
    cdef Py_ssize_t base_change = 0, change
    cdef bint have_base = False
    cdef unsigned combining, last = 0
    for character, change in decomposed:
        combining = cyg_combining_class(character)
        if not have_base:
            if combining:
                out.append((character, change))
            else:
                base, base_change, have_base = character, change, True
            continue
        composite = cyg_compose(base, character) if not blocked or last < combining else 0
        if composite:
            base, base_change = composite, base_change + change - 1
        elif combining:
            blocked.append((character, change))
            last = combining
        else:
            out.append((base, base_change))
            out += blocked
            blocked = []
            base, base_change = character, change
    if have_base:
        out.append((base, base_change))
    return out + blocked


def grapheme_starts(str text):
    """Index of the first character of every extended grapheme cluster (UAX #29)."""
    cdef cyg_grapheme_state state
    cdef Py_UCS4 character
    cdef Py_ssize_t i
    cdef list starts = []
    memset(&state, 0, sizeof(state))
    for i, character in enumerate(text):
        if cyg_grapheme_begins(&state, character):
            starts.append(i)
    return starts
