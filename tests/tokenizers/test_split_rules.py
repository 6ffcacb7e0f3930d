"""The hand-written scanners against the regular expressions they stand for."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_documents import BYTE_LEVEL, byte_level_document

from cygnet import Tokenizer
from cygnet._core._bpe import split
from cygnet.tokenizers import json_stages, pretokenizers
from cygnet.tokenizers.aligned import AlignedText
from cygnet.tokenizers.patterns import compile_pattern
from cygnet.tokenizers.pretokenizers import GPT2_PATTERN
from cygnet.tokenizers.split_rules import CL100K_PATTERN, DEEPSEEK_PATTERN, KNOWN, LLAMA3_PATTERN, O200K_PATTERN, QWEN2_PATTERN
from cygnet.tokenizers.unicode_classes import as_unicode_16

PATTERNS = [GPT2_PATTERN, CL100K_PATTERN, LLAMA3_PATTERN, QWEN2_PATTERN, O200K_PATTERN, DEEPSEEK_PATTERN]
BITS = " |  |\n|\r\n|\t|a|B|word|Word|'s|'S|'ll|'|’|1|23|4567|!|..|/|é|É|ʰ|日本|か|\u0301|٣|\xa0|\u3000|\u2028|ǅ|😀|\x00|\x85|ſ|'ſ|_|-|İ|K".split("|")
TEXTS = st.lists(st.one_of(st.sampled_from(BITS), st.characters(exclude_categories=["Cs"])), max_size=60).map("".join)


def by_expression(pattern, text):
    """Matches and what stands between them."""
    out, done = [], 0
    for match in compile_pattern(pattern).finditer(as_unicode_16(text)):
        out += [text[done : match.start()], text[match.start() : match.end()]]
        done = match.end()
    return [piece for piece in [*out, text[done:]] if piece]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=TEXTS)
@settings(max_examples=300, deadline=None)
def test_scanner_equals_expression(pattern, text):
    rule = KNOWN[pattern]
    assert [piece.decode() for piece in split(rule.words, rule.cuts, rule.digits, text.encode())] == by_expression(pattern, text)


LENGTHS = (1, 15, 16, 17, 56, 57, 58, 63, 64, 65, 127, 128, 129, 300)
UNITS = ("a", " ", "\n", "1", "!", "é", "日", "\u3000", "a ", " a", "A", "Aa")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_runs_across_word_boundaries(pattern):
    rule = KNOWN[pattern]
    for length, unit in product(LENGTHS, UNITS):
        for text in (unit * length, "x" + unit * length + " y", unit * length + "\n"):
            assert [piece.decode() for piece in split(rule.words, rule.cuts, rule.digits, text.encode())] == by_expression(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "pieces"),
    [
        (LLAMA3_PATTERN, "1234567", ["123", "456", "7"]),
        (QWEN2_PATTERN, "12", ["1", "2"]),
        (GPT2_PATTERN, "I'll we'VE", ["I", "'ll", " we", "'", "VE"]),
        (LLAMA3_PATTERN, "I'll we'VE", ["I", "'ll", " we", "'VE"]),
        (LLAMA3_PATTERN, "foo_bar!!", ["foo", "_bar", "!!"]),
        (LLAMA3_PATTERN, "a\n\n  b", ["a", "\n\n", " ", " b"]),
        (O200K_PATTERN, "fooBar HTTPServer", ["foo", "Bar", " HTTPServer"]),
    ],
)
def test_examples(pattern, text, pieces):
    rule = KNOWN[pattern]
    assert [piece.decode() for piece in split(rule.words, rule.cuts, rule.digits, text.encode())] == pieces


FALCON = [
    {"type": "Punctuation", "behavior": "Contiguous"},
    BYTE_LEVEL,
    {"type": "Digits", "individual_digits": False},
    {"type": "Split", "pattern": {"Regex": "[0-9][0-9][0-9]"}, "behavior": "Isolated", "invert": False},
]
# By tokenizers 0.23.
FALCON_PIECES = {
    "1234567": ["123", "456", "7"],
    "3.14": ["3", ".", "14"],
    "I'll we'VE": ["I", "'", "ll", "Ġwe", "'", "VE"],
    "foo_bar!!": ["foo", "_", "bar", "!!"],
    "你好abc१२३": ["ä", "½", "łå¥", "½", "abc", "à¥§à¥¨à¥©"],
    "a\n\n  b": ["a", "ĊĊĠ", "Ġb"],
}


@pytest.mark.parametrize("text", FALCON_PIECES)
def test_rules_in_sequence(text):
    pieces = FALCON_PIECES[text]
    document = byte_level_document(ignore_merges=True)
    vocab = document["model"]["vocab"]
    vocab |= {piece: 300 + i for i, piece in enumerate(dict.fromkeys(pieces)) if piece not in vocab}
    document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": FALCON}
    tokenizer = Tokenizer.from_json(document)
    assert tokenizer.encode(text).tokens == pieces
    assert tokenizer.pipeline.aligned(text, True).ids == tokenizer.encode(text).ids


@pytest.mark.parametrize("individual, pieces", [(True, ["你好abc", "१", "२", "३", ".", "1", "2"]), (False, ["你好abc", "१२३", ".", "12"])])
def test_digits_alone_or_together(individual, pieces):
    stage = json_stages.pre_tokenizer({"type": "Digits", "individual_digits": individual}, "pre_tokenizer")
    assert [piece.text for piece in stage.split(AlignedText.of("你好abc१२३.12"))] == pieces


def test_cuts_make_stretches_of_their_own():
    assert split("gpt2", ("each_number",), 0, b"a  12 b") == [b"a", b"  ", b"1", b"2", b" b"]
    assert split("deepseek", ("three_numbers", "cjk"), 0, "a 1234日本b".encode()) == [b"a", b" ", b"123", b"4", "日本".encode(), b"b"]


@pytest.mark.parametrize(
    "pattern, text, found", [(r"[\w]", "²", 0), (r"\w", "²", 1), (r"[^\w]", "¼", 1), (r"\b", "!²!", 2), (r"\b", "!\u200d!", 0), (r"\B", "ab", 1)]
)
def test_word_characters_are_those_of_oniguruma(pattern, text, found):
    assert len(list(compile_pattern(pattern).finditer(text))) == found


EMPTY = ("b*", "b*?", "b|", "|bb", r"\b", "(?=a)|b", "(?<=b)|b", "^", "$", "^|b", "é*|a")


@pytest.mark.parametrize(
    "behaviour, invert, words", [("MergedWithPrevious", True, ["ba"]), ("MergedWithNext", False, ["ba"]), ("Isolated", False, ["b", "a"])]
)
def test_an_empty_match_right_behind_another_splits_nothing(behaviour, invert, words):
    found = pretokenizers.Split(compile_pattern("b*"), behaviour, invert).split(AlignedText.of("ba"))
    assert [word.text for word in found] == words


@pytest.mark.parametrize("pattern", EMPTY)
@given(text=st.text("abé \n", min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_patterns_that_match_nothing_split_as_the_library_does(pattern, text):
    library = pytest.importorskip("tokenizers.pre_tokenizers")
    regex = pytest.importorskip("tokenizers").Regex(pattern)
    names = {"Removed": "removed", "Isolated": "isolated", "Contiguous": "contiguous"}
    names |= {"MergedWithPrevious": "merged_with_previous", "MergedWithNext": "merged_with_next"}
    for behaviour, name in names.items():
        for invert in (False, True):
            words = pretokenizers.Split(compile_pattern(pattern), behaviour, invert).split(AlignedText.of(text))
            wanted = library.Split(regex, name, invert).pre_tokenize_str(text)
            assert [(word.text, word.original(0, len(word))) for word in words] == [found for found in wanted if found[0]]


def test_numbers_of_unicode_17_are_digits_and_match_no_expression():
    for individual, words in ((True, ["a", "\U00011de8", "\U00016ff6", "b"]), (False, ["a", "\U00011de8\U00016ff6", "b"])):
        assert [word.text for word in pretokenizers.Digits(individual).split(AlignedText.of("a\U00011de8\U00016ff6b"))] == words
    document = byte_level_document(pre_tokenizer={})
    document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, dict(BYTE_LEVEL)]}
    encoding = Tokenizer.from_json(document).encode("\U00011de8\U00016ff6")
    assert encoding.word_ids == [0] * 4 + [1] * 4


def test_characters_that_had_no_script_of_their_own_in_unicode_9():
    scripts = pretokenizers.UnicodeScripts()
    assert [word.text for word in scripts.split(AlignedText.of("\u0606\u061ca"))] == ["\u0606", "\u061c", "a"]


def test_ranges_of_a_gguf_rule_hold_code_points_that_are_not_assigned():
    """U+0E69 lies in U+0800 to U+4E00 and belongs to no version of Unicode; a space beside it is a piece of its own."""
    from cygnet.tokenizers.gguf_split import IDEOGRAPHS
    from cygnet.tokenizers.patterns import FileExpression

    assert FileExpression(IDEOGRAPHS).spans("\u0e69 \u0e32\u3000\u4e00") == [(0, 1), (2, 3), (4, 5)]
