"""Normalizers: texts and alignments worked out by hand, and compared with the tokenizers library where it is installed."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cygnet._core import _unicode
from cygnet._core._charsmap import Charsmap
from cygnet.errors import TokenizerError
from cygnet.tokenizers import normalizers
from cygnet.tokenizers.aligned import AlignedText
from cygnet.tokenizers.patterns import FileExpression


def run(normalizer, text):
    result = normalizer.normalize(AlignedText.of(text))
    assert len(result.text) == len(result.spans)
    return result.text, result.spans


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_forms_agree_with_python_on_what_unicode_9_had(form):
    old = [c for c in map(chr, range(0x110000)) if not "\ud800" <= c <= "\udfff" and _unicode.combining_class(c) == unicodedata.combining(c)]
    normalizer = normalizers.UnicodeForm(form)
    wrong = {c for c in old if normalizer.normalize(AlignedText.of(c)).text != unicodedata.normalize(form, c)}
    later = {"\u32ff", "\uab69", "\U00011938"} | {c for c in wrong if unicodedata.decomposition(c).startswith("<super>")}
    assert wrong <= later | {c for c in wrong if ord(c) >= 0x105C9}


def test_composition_over_several_characters_keeps_the_first_range():
    assert run(normalizers.UnicodeForm("NFC"), "e\u0301x") == ("éx", [(0, 1), (2, 3)])
    assert run(normalizers.UnicodeForm("NFC"), "\u1112\u1161\u11ab!") == ("한!", [(0, 1), (3, 4)])


def test_what_unicode_does_not_assign_is_no_letter():
    replace = normalizers.from_config({"type": "Replace", "pattern": {"Regex": r"\p{L}"}, "content": "-"}, "normalizer")
    assert run(replace, "a\U0003d7feb\U00016ea0")[0] == "-\U0003d7fe-\U00016ea0"


def test_ligature_and_ellipsis_stand_for_one_character():
    assert run(normalizers.UnicodeForm("NFKC"), "ﬁn…") == ("fin...", [(0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (2, 3)])


def test_dotted_capital_i_lowers_to_two_characters():
    assert run(normalizers.Lowercase(), "İS") == ("i\u0307s", [(0, 1), (0, 1), (1, 2)])


@pytest.mark.parametrize(
    "options, text, expected",
    [
        ({}, "Schön, Müller", "schon, muller"),
        ({"strip_accents": False}, "Schön バ", "schön バ"),
        ({"lowercase": False}, "Schön", "Schön"),
        ({"lowercase": False, "strip_accents": True}, "Schön", "Schon"),
        ({"clean_text": False}, "a\tb\x00", "a\tb\x00"),
        ({}, "T\x10his\u202fis", "this is"),
        ({}, "a漢b", "a 漢 b"),
        ({"handle_chinese_chars": False}, "a漢b", "a漢b"),
    ],
)
def test_bert_switches_one_by_one(options, text, expected):
    assert run(normalizers.BertNormalizer(**options), text)[0] == expected


def test_dropped_characters_leave_the_ranges_of_the_others():
    assert run(normalizers.BertNormalizer(), "T\x10h")[1] == [(0, 1), (2, 3)]


def test_strip_and_prepend():
    assert run(normalizers.Strip(), " \u00a0ab\n") == ("ab", [(2, 3), (3, 4)])
    assert run(normalizers.Strip(left=False), " a ") == (" a", [(0, 1), (1, 2)])
    assert run(normalizers.Prepend("▁"), "") == ("", [])
    assert run(normalizers.Prepend("▁"), "ab") == ("▁ab", [(0, 1), (0, 1), (1, 2)])


def test_replacement_stands_for_the_last_character_of_its_match():
    assert run(normalizers.Replace(FileExpression("b+"), "xy"), "abbc") == ("axyc", [(0, 1), (2, 3), (2, 3), (3, 4)])


def test_empty_match_after_a_match_does_not_count():
    assert run(normalizers.Replace(FileExpression("b*"), "-"), "abc")[0] == "-a-c-"


def test_behind_an_empty_match_the_search_goes_on_a_character_further():
    assert run(normalizers.Replace(FileExpression("b*?"), "-"), "bab")[0] == "-b-a-b-"
    assert run(normalizers.Replace(FileExpression("|bb"), "-"), "bbb")[0] == "-b-b-b-"


def test_a_line_end_at_the_end_of_the_text_begins_no_line():
    assert run(normalizers.Replace(FileExpression("^"), "-"), "a\nb\n")[0] == "-a\n-b\n"
    assert run(normalizers.Replace(FileExpression("$"), "-"), "a\nb\n")[0] == "a-\nb-\n-"


@pytest.mark.parametrize("first, text", [(normalizers.Strip(), "  ab"), (normalizers.StripAccents(), "\u0301\u0301ab")])
def test_what_is_put_before_what_is_left_stands_at_the_beginning(first, text):
    stages = normalizers.Sequence([first, normalizers.Replace(FileExpression("^"), "xy")])
    assert run(stages, text) == ("xyab", [(0, 0), (0, 0), (2, 3), (3, 4)])


@pytest.mark.parametrize(
    "config, place",
    [
        ({"type": "Nope"}, "tokenizer.json: normalizer: unknown component 'Nope'"),
        ({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Replace", "content": "x"}]}, r"normalizers\[1\].pattern is missing"),
        ({"type": "Precompiled", "precompiled_charsmap": "!"}, "precompiled_charsmap is no valid base64"),
        ({"type": "Precompiled", "precompiled_charsmap": "/////w=="}, "does not fit a character map of 4 bytes"),
        ({"type": "BertNormalizer", "lowercase": 1}, "normalizer.lowercase must be bool"),
    ],
)
def test_damaged_configurations_name_the_place(config, place):
    with pytest.raises(TokenizerError, match=place):
        normalizers.from_config(config, "tokenizer.json: normalizer")


@given(st.binary(min_size=4, max_size=400), st.text(max_size=10))
@settings(max_examples=200, deadline=None)
def test_hostile_character_maps_never_leave_their_memory(data, text):
    trie = len(data[4:]) // 4 * 4
    blob = trie.to_bytes(4, "little") + data[4:]
    if trie < 4:
        with pytest.raises(TokenizerError):
            Charsmap(blob)
        return
    charsmap = Charsmap(blob)
    charsmap.longest(text)
    normalizers.Precompiled(blob).normalize(AlignedText.of(text))


def library_pairs():
    """The library's normalizers and ours."""
    pytest.importorskip("tokenizers.models")
    import tokenizers as library

    theirs = library.normalizers
    pairs = [(getattr(theirs, form)(), normalizers.UnicodeForm(form)) for form in ("NFC", "NFD", "NFKC", "NFKD")]
    pairs += [(getattr(theirs, name)(), getattr(normalizers, name)()) for name in ("Lowercase", "Strip", "StripAccents", "Nmt", "ByteLevel")]
    for accents in (None, True, False):
        for bits in range(8):
            options = bool(bits & 1), bool(bits & 2), accents, bool(bits & 4)
            pairs.append((theirs.BertNormalizer(*options), normalizers.BertNormalizer(*options)))
    pairs.append((theirs.Replace(library.Regex("b*"), "-"), normalizers.Replace(FileExpression("b*"), "-")))
    pairs.append((theirs.Replace("aa", ""), normalizers.Replace(FileExpression("aa"), "")))
    return library, pairs


MARKS = "".join(c for c in map(chr, range(0x300, 0x1AC0)) if unicodedata.combining(c))
texts = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("ab \u200d\u1100\u1161\u11a8가" + MARKS)), max_size=12)


@given(texts)
@settings(max_examples=150, deadline=None)
def test_texts_and_ranges_equal_the_library(text):
    library, pairs = library_pairs()
    for theirs, ours in pairs:
        expected = theirs.normalize_str(text)
        got, spans = run(ours, text)
        assert got == expected, ours
        reader = library.Tokenizer(library.models.WordLevel({"?": 0}, unk_token="?"))
        reader.normalizer = theirs
        reader.pre_tokenizer = library.pre_tokenizers.Split(library.Regex("(?m:.)"), "isolated")
        assert spans == reader.encode(text).offsets, ours
