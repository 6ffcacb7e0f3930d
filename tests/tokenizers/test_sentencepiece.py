"""SentencePiece models: small ones written here by hand, damaged ones, and the sentencepiece library where it is installed."""

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece_files import BPE, BYTES, CHAR, LETTERS, MARKS, NORMAL, UNIGRAM, UNUSED, USER_DEFINED, WORD, field, model

from cygnet._core._protobuf import fields
from cygnet.errors import TokenizerError
from cygnet.tokenizers.sentencepiece_loader import from_bytes


def encode(data, text):
    """Ids by the lane and by the stages, which must agree."""
    tokenizer = from_bytes(data)
    ids = tokenizer.encode(text).ids
    assert tokenizer.pipeline.aligned(text, True).ids == ids
    return ids


def test_unigram_squeezes_spaces_and_adds_the_dummy_one():
    assert encode(model(LETTERS), "  ab   a ") == [7, 3, 4]
    assert encode(model(LETTERS, dummy=False), "ab") == [6]
    assert encode(model(LETTERS, squeeze=False), "ab ") == [7, 3]
    assert encode(model(LETTERS, suffix=True), "ab") == [6, 3]
    assert encode(model(LETTERS), "   ") == []


def test_runs_of_spaces_and_joiners_are_kept_where_the_file_keeps_them():
    text = "  a   b\n\tक्\u200dष  "
    kept, squeezed = (from_bytes(model([*LETTERS, *BYTES], byte_fallback=True, squeeze=squeeze)) for squeeze in (False, True))
    assert kept.decode(kept.encode(text).ids) == text
    assert kept.encode("a  b").ids != kept.encode("a b").ids
    assert squeezed.decode(squeezed.encode(text).ids) == "a b\n\tक्\u200dष"
    assert squeezed.encode("a  b").ids == squeezed.encode("a b").ids


def test_control_pieces_in_the_text_are_text():
    assert encode(model(LETTERS), "<s>") == [3, 0]


def test_user_defined_pieces_score_by_their_length_and_the_best_score():
    assert encode(model([*LETTERS, ("c", 0.0, NORMAL), ("bab", -100.0, USER_DEFINED)]), "bab") == [3, 9]
    assert encode(model([*LETTERS, ("bab", -100.0, USER_DEFINED)]), "abab") == [7, 6]


def test_unused_pieces_are_passed_over():
    assert encode(model([*MARKS, ("a", -1.0, NORMAL), ("aa", -0.1, UNUSED)], dummy=False), "aa") == [3, 3]
    assert encode(model([*MARKS, ("a", -1.0, NORMAL), ("aa", -0.1, UNUSED)], kind=BPE, dummy=False), "aa") == [3, 3]


def test_bpe_joins_the_best_pair_leftmost_first():
    pieces = [*MARKS, ("a", -9.0, NORMAL), ("aa", -1.0, NORMAL), ("b", -9.0, NORMAL), ("ab", -2.0, NORMAL)]
    assert encode(model(pieces, kind=BPE, dummy=False), "aaab") == [4, 6]
    assert encode(model(pieces, kind=BPE, dummy=False), "aaa") == [4, 3]


def test_bpe_takes_a_million_equal_characters():
    pieces = [*MARKS, ("a", -9.0, NORMAL), ("aa", -1.0, NORMAL), ("aaaa", -2.0, NORMAL)]
    assert from_bytes(model(pieces, kind=BPE, dummy=False)).encode("a" * 1_000_000).ids == [5] * 250_000


def test_char_and_word_models():
    assert encode(model(LETTERS, kind=CHAR), "ab") == [3, 4, 5]
    assert encode(model(LETTERS, kind=WORD), "ab ba") == [7, 0]
    assert encode(model([*LETTERS, ("ba", 0.0, USER_DEFINED)], kind=CHAR), "bab") == [3, 8, 5]


@pytest.mark.parametrize("kind", [UNIGRAM, BPE, CHAR])
def test_bytes_spell_unknown_characters(kind):
    tokenizer = from_bytes(model([*LETTERS, *BYTES], kind=kind, byte_fallback=True))
    ids = tokenizer.encode("aé\0", add_special_tokens=False).ids
    assert ids == [3, 4, 8 + 0xC3, 8 + 0xA9, 8]
    assert tokenizer.decode(ids) == "aé\0"


def test_offsets_name_the_source():
    encoding = from_bytes(model(LETTERS)).encode("  ab  éé")
    assert [encoding.tokens[i] for i in range(3)] == ["▁ab", "▁", "éé"]
    assert encoding.offsets[0] == (2, 4)
    assert encoding.offsets[2] == (6, 8)


@pytest.mark.parametrize(
    "ids, text",
    [([7, 3, 4], "ab a"), ([1, 7, 2, 4], "aba"), ([3, 3, 4], "a"), ([4, 0, 4], "a ⁇ a"), ([3], ""), ([], "")],
)
def test_decode_hides_control_pieces_and_the_leading_space(ids, text):
    assert from_bytes(model(LETTERS)).decode(ids) == text


def test_decode_of_broken_bytes_gives_one_replacement_a_byte():
    tokenizer = from_bytes(model([*LETTERS, *BYTES], byte_fallback=True))
    assert tokenizer.decode([8 + 0xE5, 8 + 0x8F, 4]) == "\ufffd\ufffda"
    assert tokenizer.decode([8 + 0xEA, 8 + 0xB9, 8 + 0xB0]) == "깰"


@given(st.lists(st.integers(0, 263), max_size=12))
@settings(max_examples=300, deadline=None)
def test_stream_equals_decode(ids):
    for squeeze in (True, False):
        tokenizer = from_bytes(model([*LETTERS, *BYTES], byte_fallback=True, squeeze=squeeze))
        stream = tokenizer.stream_decoder()
        assert "".join([stream.push(i) for i in ids]) + stream.flush() == tokenizer.decode(ids)


@pytest.mark.parametrize(
    "data, place",
    [
        (b"", "holds no pieces"),
        (b"\x0a\xff\xff\xff\xff\x0f", "reaches past the end"),
        (b"\x0a\x80", "reaches past the end"),
        (b"\x0b", "unknown wire type 3"),
        (b"\x08\x01", r"pieces\[0\] must be a string of bytes"),
        (field(1, field(1, b"\xff")), r"pieces\[0\].piece is not valid UTF-8"),
        (field(1, field(1, "a") + field(3, 9)), r"pieces\[0\].type is 9"),
        (field(1, field(1, "a") + field(2, float("nan"))), r"pieces\[0\].score is nan"),
        (field(1, field(2, 1.0)), r"pieces\[0\] is empty"),
        (model([*LETTERS, ("a", 0.0, NORMAL)]), r"pieces\[8\] 'a' is already pieces\[4\]"),
        (model(LETTERS[1:]), "0 pieces of type UNKNOWN"),
        (model([*LETTERS, *BYTES]), "byte_fallback is off"),
        (model([*LETTERS, *BYTES[1:]], byte_fallback=True), "needs the 256 BYTE pieces"),
        (model(LETTERS, kind=9), "model_type is 9"),
        (model(LETTERS) + field(3, field(2, b"\xff\xff\xff\xff....")), "precompiled_charsmap"),
    ],
)
def test_damaged_models_name_the_place(data, place):
    with pytest.raises(TokenizerError, match=place):
        from_bytes(data)


def test_mutated_models_raise_or_work():
    draw = random.Random(1)
    sound = model([*LETTERS, ("bab", -1.0, USER_DEFINED)], kind=BPE)
    for _ in range(1500):
        data = bytearray(sound)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            tokenizer = from_bytes(bytes(data[: draw.randrange(len(data) // 2, len(data) + 1)]))
        except TokenizerError:
            continue
        assert tokenizer.decode(tokenizer.encode("ab ba\0é bab").ids) is not None


def test_fields_read_what_was_written():
    data = field(1, "x") + field(2, 1.5) + field(3, 300)
    assert fields(data, "m") == [(1, b"x"), (2, struct.pack("<f", 1.5)), (3, 300)]


SPM = ["enpt-spm", "llama2-spm", "own-sp-bpe-bytes", "own-sp-bpe-nfkc", "own-sp-char", "own-sp-unigram-noprefix-bytes", "own-sp-unigram-suffix-cf"]
SPM += ["spm-botchan-1k", "spm-ja-8k", "spm-word-albert", "spm-unigram-bytes-noprefix", "t5-spm"]
TEXTS = st.text(st.one_of(st.sampled_from("the a  ▁é한\u0301\u3000\r\n\t\0👍.,12<sep>"), st.characters(exclude_categories=["Cs"])), max_size=30)


@pytest.mark.parametrize("name", SPM)
def test_equals_the_sentencepiece_library(conformance, unpacked, name):
    library = pytest.importorskip("sentencepiece")
    folder = conformance / "tokenizers" / name
    path = unpacked(next(p for p in folder.iterdir() if p.name.removesuffix(".xz").endswith((".model", ".spm"))))
    theirs, ours = library.SentencePieceProcessor(model_proto=path.read_bytes()), from_bytes(path.read_bytes())

    @given(TEXTS, st.lists(st.integers(0, theirs.get_piece_size() - 1), max_size=8))
    @settings(max_examples=150, deadline=None)
    def check(text, ids):
        assert ours.encode(text).ids == theirs.encode(text)
        assert ours.decode(ids) == theirs.decode(ids)

    check()
