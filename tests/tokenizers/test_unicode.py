"""Unicode tables against Python's own (Unicode 14.0 or later), code point by code point."""

import string
import unicodedata

import pytest

from cygnet._core import _unicode

ALL = [chr(code) for code in range(0x110000)]
# Categories that changed between the versions of Python's table and ours.
RECLASSIFIED = {"\u0295", "\u1734", "\U0001171e"}


def test_categories_agree_where_both_know_the_character():
    known = [c for c in ALL if "Cn" not in (unicodedata.category(c), _unicode.category(c)) and c not in RECLASSIFIED]
    assert [c for c in known if _unicode.category(c) != unicodedata.category(c)] == []
    assert len(known) > 280_000


def test_characters_of_later_versions_are_unassigned():
    assert _unicode.category("\U0003ffff") == "Cn"
    assert _unicode.category("\U00011de0") == "Cn"
    assert _unicode.category("\u1c89") == "Lu"


def test_characters_of_unicode_16():
    new = [c for c in ALL if _unicode.is_new_in_16(c)]
    assert len(new) == 5185
    assert all(_unicode.category(c) != "Cn" for c in new)
    assert all(unicodedata.category(c) == "Cn" for c in new) or unicodedata.unidata_version >= "16"
    assert _unicode.has_new_in_16("ab\U0001cc00") and not _unicode.has_new_in_16("ab\U0001cbff\u0896漢")


def test_accents_that_changed_their_category():
    assert _unicode.is_bert_accent("\U0001171e") and not _unicode.is_bert_accent("\ua9bd")


def test_white_space():
    spaces = [*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
    assert {c for c in ALL if _unicode.is_space(c)} == set(map(chr, spaces))


def test_numbers_of_unicode_17_count():
    assert _unicode.is_numeric("\U00011de0") and _unicode.is_numeric("½") and _unicode.is_numeric("Ⅷ") and not _unicode.is_numeric("x")


def test_lower_case():
    wrong = [c for c in ALL if unicodedata.category(c) != "Cn" and _unicode.lower(c) != c.lower()]
    assert wrong == []
    assert _unicode.lower("İ") == "i\u0307"
    assert _unicode.lower("\U00016ea0") == "\U00016ebb"


def test_bert_punctuation_is_ascii_symbols_and_unicode_8():
    assert all(_unicode.is_bert_punctuation(c) for c in string.punctuation)
    assert _unicode.is_bert_punctuation("。") and _unicode.is_bert_punctuation("\u166d")
    assert not _unicode.is_bert_punctuation("\u2e43")  # new in 9.0
    assert not _unicode.is_bert_punctuation("€")


def test_combining_class_stops_at_unicode_9():
    assert _unicode.combining_class("\u0301") == 230
    assert _unicode.combining_class("\u1df6") == 0  # new in 10.0


@pytest.mark.parametrize(
    "character, script",
    [("a", "Latin"), ("я", "Cyrillic"), ("漢", "Han"), ("ひ", "Hiragana"), (" ", "Common"), ("\u0301", "Inherited"), ("\U0003ffff", "Unknown")],
)
def test_scripts(character, script):
    assert _unicode.script(character) == script


def test_marks_of_unicode_17_do_not_begin_a_cluster():
    assert _unicode.grapheme_starts("ʰ\u1acf\u1add\u1adee\u1ae0\u1aeb\u1aec") == [0, 3, 4, 7]
