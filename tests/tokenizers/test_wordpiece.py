"""WordPiece: the exact way, the compiled lane, and vocab.txt."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cygnet._core._runner import Runner
from cygnet.errors import TokenizerError
from cygnet.tokenizers import Tokenizer
from cygnet.tokenizers.normalizers import BertNormalizer
from cygnet.tokenizers.pretokenizers import BertPreTokenizer
from cygnet.tokenizers.wordpiece import WordPiece

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##happ", "##iness", "h", "##e", "e", "##h", "schon", "漢", ",", "é", "##é", "i", "##̇"]


@pytest.fixture
def model():
    return WordPiece({token: i for i, token in enumerate(VOCAB)})


def test_longest_match_first(model):
    assert model.tokenize("unhappiness") == [(5, 0, 2), (6, 2, 6), (7, 6, 11)]


def test_word_with_an_uncovered_rest_is_unknown(model):
    assert model.tokenize("unhappy") == [(1, 0, 7)]


def test_offsets_count_characters(model):
    assert model.tokenize("éé") == [(15, 0, 1), (16, 1, 2)]


def test_limit_counts_characters(model):
    assert model.tokenize("h" + "é" * 99)[0] == (8, 0, 1)
    assert model.tokenize("h" + "é" * 100) == [(1, 0, 101)]


def test_vocabulary_without_continuations():
    assert WordPiece({"[UNK]": 0, "a": 1}).tokenize("aa") == [(0, 0, 2)]


def test_empty_prefix_continues_with_whole_tokens():
    assert WordPiece({"[UNK]": 0, "a": 1, "b": 2}, continuing_subword_prefix="").tokenize("ab") == [(1, 0, 1), (2, 1, 2)]


def test_unknown_word_needs_an_unknown_token():
    with pytest.raises(TokenizerError, match="unk_token"):
        WordPiece({"a": 0}).tokenize("b")
    tokenizer = Tokenizer(WordPiece({"a": 0}), normalizer=BertNormalizer(), pre_tokenizer=BertPreTokenizer())
    with pytest.raises(TokenizerError, match="unk_token"):
        tokenizer.encode("b")


SWITCHES = st.tuples(st.booleans(), st.booleans(), st.sampled_from([None, True, False]), st.booleans())
ALPHABET = st.one_of(st.sampled_from("unhapi eé,漢İ\u0301\u0323\u302e\x00\x85\u3000" + "".join(VOCAB)), st.characters(exclude_categories=["Cs"]))


@given(SWITCHES, st.text(ALPHABET, max_size=30))
@settings(max_examples=400, deadline=None)
def test_lane_equals_the_stages(switches, text):
    model = WordPiece({token: i for i, token in enumerate(VOCAB)}, max_input_chars_per_word=8)
    normalizer, split = BertNormalizer(*switches), BertPreTokenizer()
    found = Runner(model.fast_lane(normalizer, split), [], len(VOCAB)).ids(text)
    lane = None if found is None else found.tolist()
    tokenizer = Tokenizer(model, normalizer=normalizer, pre_tokenizer=split)
    exact = tokenizer.pipeline.aligned(text, True).ids
    assert lane is None or lane == exact
    if text.isascii():
        assert lane == exact


def write(folder, config=None):
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder / "vocab.txt"


def test_vocab_txt(tmp_path):
    tokenizer = Tokenizer.from_file(write(tmp_path))
    encoding = tokenizer.encode("Unhappiness, Schön", "h")
    assert encoding.ids == [2, 5, 6, 7, 14, 12, 3, 8, 3]
    assert encoding.type_ids == [0] * 7 + [1, 1]
    assert tokenizer.decode(encoding.ids) == "unhappiness, schon h"
    assert tokenizer.encode("[MASK]h").ids == [2, 4, 8, 3]


def test_switches_beside_vocab_txt(tmp_path):
    tokenizer = Tokenizer.from_file(write(tmp_path, {"do_lower_case": True, "strip_accents": False, "tokenize_chinese_chars": False}))
    assert tokenizer.encode("É漢", add_special_tokens=False).ids == [1]
    assert tokenizer.encode("É", add_special_tokens=False).ids == [15]


def test_damaged_vocab_txt(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"[UNK]\n\xff\n")
    with pytest.raises(TokenizerError, match="UTF-8"):
        Tokenizer.from_file(tmp_path / "vocab.txt")
    (tmp_path / "vocab.txt").write_bytes(b"a\nb\n")
    with pytest.raises(TokenizerError, match=r"\[UNK\]"):
        Tokenizer.from_file(tmp_path / "vocab.txt")
    with pytest.raises(TokenizerError, match="do_lower_case"):
        Tokenizer.from_file(write(tmp_path, {"do_lower_case": "yes"}))
