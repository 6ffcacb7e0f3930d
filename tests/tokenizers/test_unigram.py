"""Unigram of tokenizer.json: segmentation by hand, the lane against the stages, and the tokenizers library where it is installed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cygnet._core._vocabulary import read_pieces
from cygnet.errors import TokenizerError
from cygnet.tokenizers import Tokenizer
from cygnet.tokenizers.unigram import Unigram

VOCAB = [("<unk>", 0.0), ("▁", -2.0), ("a", -1.0), ("▁a", -1.5), ("ab", -1.2), ("b", -3.0), ("é", -4.0), ("▁▁", -6.0), ("한", -2.5)]


def test_best_path_wins_over_longest_match():
    model = Unigram([("<unk>", 0.0), ("a", -1.0), ("aa", -5.0)], unk_id=0)
    assert model.tokenize("aaa") == [(1, 0, 1), (1, 1, 2), (1, 2, 3)]


def test_unknown_characters_in_a_row_are_one_piece():
    assert Unigram(VOCAB, unk_id=0).tokenize("axyéz") == [(2, 0, 1), (0, 1, 3), (6, 3, 4), (0, 4, 5)]


def test_bytes_spell_what_no_piece_covers():
    vocab = [("<unk>", 0.0), ("a", -1.0), *((f"<0x{b:02X}>", 0.0) for b in range(256))]
    pieces = Unigram(vocab, unk_id=0, byte_fallback=True).tokenize("aéx")
    assert pieces == [(1, 0, 1), (2 + 0xC3, 1, 3), (2 + 0xA9, 1, 3), (2 + ord("x"), 1, 3)]


def test_missing_byte_piece_leaves_the_unknown_piece():
    vocab = [("<unk>", 0.0), ("a", -1.0), ("<0xC3>", 0.0)]
    assert Unigram(vocab, unk_id=0, byte_fallback=True).tokenize("é") == [(0, 0, 1)]


def test_unknown_needs_a_piece():
    with pytest.raises(TokenizerError, match="unk_id"):
        Unigram(VOCAB).tokenize("ax")


def test_long_runs_take_time_in_proportion():
    model = Unigram(VOCAB, unk_id=0)
    assert len(model.tokenize("ab" * 100_000)) == 100_000
    assert model.tokenize("x" * 200_000) == [(0, 0, 200_000)]


def document(**model):
    return {
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [list(row) for row in VOCAB], **model},
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    }


@pytest.mark.parametrize(
    "changes, place",
    [
        ({"vocab": [["a", 0.0], ["b"]]}, r"model.vocab\[1\]"),
        ({"vocab": [["a", "x"]]}, r"model.vocab\[0\]"),
        ({"vocab": [["a", float("nan")]]}, "finite number"),
        ({"vocab": []}, "empty"),
        ({"unk_id": 99}, "unk_id is 99"),
        ({"byte_fallback": 3}, "byte_fallback"),
    ],
)
def test_damaged_models_name_the_place(changes, place):
    with pytest.raises(TokenizerError, match=place):
        Tokenizer.from_json(document(**changes))


METASPACE = [{"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True} for scheme in ("always", "never")]
WORDS = [*METASPACE, {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE[0]]}]
SQUEEZE = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
STRIP = {"type": "Strip", "strip_left": True, "strip_right": True}
NORMALIZERS = [None, SQUEEZE, {"type": "Sequence", "normalizers": [SQUEEZE, STRIP]}]
TEXTS = st.text(st.one_of(st.sampled_from("ab  ▁é한\u0301\u0085\u3000\r\n\t\0👍\u200d"), st.characters(exclude_categories=["Cs"])), max_size=40)


@given(st.sampled_from(NORMALIZERS), st.sampled_from(WORDS), TEXTS)
@settings(max_examples=400, deadline=None)
def test_lane_equals_the_stages(normalizer, words, text):
    tokenizer = Tokenizer.from_json({**document(), "normalizer": normalizer, "pre_tokenizer": words})
    assert tokenizer.pipeline.runner is not None
    assert tokenizer.encode(text).ids == tokenizer.pipeline.aligned(text, True).ids


@pytest.mark.parametrize("name", ["t5-unigram", "enpt-unigram"])
def test_lane_equals_the_stages_with_a_character_map(conformance, unpacked, name):
    tokenizer = Tokenizer.from_file(unpacked(conformance / "tokenizers" / name / "tokenizer.json.xz"))
    assert tokenizer.pipeline.runner is not None

    @given(TEXTS)
    @settings(max_examples=150, deadline=None)
    def check(text):
        assert tokenizer.encode(text, add_special_tokens=False).ids == tokenizer.pipeline.aligned(text, True).ids

    check()


@pytest.mark.parametrize("name", ["t5-unigram", "enpt-unigram", "own-hf-unigram-bytes"])
def test_equals_the_tokenizers_library(conformance, unpacked, name):
    pytest.importorskip("tokenizers.models")
    import tokenizers

    path = next((conformance / "tokenizers" / name).glob("tokenizer.json*"))
    path = unpacked(path)
    theirs, ours = tokenizers.Tokenizer.from_file(str(path)), Tokenizer.from_file(path)

    @given(TEXTS)
    @settings(max_examples=200, deadline=None)
    def check(text):
        expected, got = theirs.encode(text), ours.encode(text)
        assert (got.ids, got.offsets) == (expected.ids, expected.offsets)
        assert ours.decode(got.ids) == theirs.decode(expected.ids)

    check()


def test_scores_are_read_as_the_library_reads_them():
    reference = pytest.importorskip("tokenizers", minversion="0.15")  # a version: this folder has the same name
    # Ways through a run of signs that differ by the last bit of a sum only.
    scores = [-13.234677314758301, -9.114446640014648, -11.780439376831055, -12.0122928619384766, -10.345678901234567, -14.000000953674316]
    vocab = [["<unk>", 0.0], *([sign, score] for sign, score in zip(["-", "--", "---", "----", "-----", "------"], scores, strict=True))]
    document = {"version": "1.0", "added_tokens": [], "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab}}
    for rest in ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"):
        document[rest] = None
    text = json.dumps(document)
    ours, theirs = Tokenizer.from_json(text), reference.Tokenizer.from_str(text)
    assert all(ours.encode("-" * n).ids == theirs.encode("-" * n).ids for n in range(1, 200))
    numbers = [-2.0122928619384766, 0.1, -1e-07, -100.0, -1230, 1.5e22, -0.0, 5e-324, -12345678901234567.0]
    read, wrong = read_pieces([["a", number] for number in numbers])
    assert wrong == -1 and [score for _, score in read] == [
        -20122928619384766 / 10.0**16,
        0.1,
        -1 / 10.0**7,
        -100.0,
        -1230.0,
        15 * 10.0**21,
        0.0,
        5e-324,
        -12345678901234568.0,
    ]
