"""Byte pair encoding: merge order, long pieces, options, the lane against the stages."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_documents import byte_level_document

from cygnet import Tokenizer
from cygnet.errors import TokenizerError
from cygnet.tokenizers.bpe import BPE

LETTERS = "abc"


def naive(merges, word):
    """Merging by the definition: always the pair of lowest rank, the leftmost first."""
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    parts = list(word)
    while True:
        found = [(ranks[pair], i) for i, pair in enumerate(zip(parts, parts[1:], strict=False)) if pair in ranks]
        if not found:
            return parts
        _, i = min(found)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def random_model(seed):
    rng = random.Random(seed)
    tokens, merges = list(LETTERS), []
    while len(merges) < 25:
        pair = (rng.choice(tokens), rng.choice(tokens))
        if pair not in merges and len("".join(pair)) < 8:
            merges.append(pair)
            tokens.append("".join(pair))
    return {t: i for i, t in enumerate(dict.fromkeys(tokens))}, merges


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("length", [0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 66, 300])
def test_merges_follow_the_definition(seed, length):
    vocab, merges = random_model(seed)
    rng = random.Random(length)
    word = "".join(rng.choice(LETTERS) for _ in range(length))
    model = BPE(vocab, [list(m) for m in merges])
    assert [model.id_to_token(i) for i, _, _ in model.tokenize(word)] == naive(merges, word)


@given(st.integers(0, 50), st.text(LETTERS + " ", max_size=200))
@settings(max_examples=200, deadline=None)
def test_lane_equals_the_stages(seed, text):
    _, merges = random_model(seed)
    tokenizer = Tokenizer.from_json(byte_level_document(merges))
    assert tokenizer.pipeline.runner is not None
    for _ in range(2):
        assert tokenizer.encode(text).ids == tokenizer.pipeline.aligned(text, True).ids


@pytest.mark.parametrize("spelling", [lambda a, b: f"{a} {b}", lambda a, b: [a, b]])
def test_both_spellings_of_merges(spelling):
    model = BPE({"a": 0, "b": 1, "ab": 2}, [spelling("a", "b")])
    assert [i for i, _, _ in model.tokenize("abba")] == [2, 1, 0]


def test_pairs_may_hold_spaces():
    model = BPE({" ": 0, "x y": 1, " x y": 2, "x": 3, "y": 4, "x ": 5}, [["x", " "], ["x ", "y"], [" ", "x y"]])
    assert [i for i, _, _ in model.tokenize(" x y")] == [2]


@pytest.mark.parametrize("merges", [["a b c"], ["ab"], [["a"]], [[1, 2]], [None], ["a z"], ["b a"]])
def test_malformed_merge_is_named(merges):
    with pytest.raises(TokenizerError, match=r"merges\[1\]"):
        BPE({"a": 0, "b": 1, "ab": 2}, ["a b", *merges])


def test_unknown_characters():
    vocab = {"<unk>": 0, "a": 1, "b": 2, "<0xC3>": 3, "<0xA9>": 4}
    assert [p[0] for p in BPE(vocab, []).tokenize("axyb")] == [1, 2]
    assert BPE(vocab, [], unk_token="<unk>").tokenize("axyb") == [(1, 0, 1), (0, 1, 2), (0, 2, 3), (2, 3, 4)]
    assert BPE(vocab, [], unk_token="<unk>", fuse_unk=True).tokenize("axyb") == [(1, 0, 1), (0, 1, 3), (2, 3, 4)]
    assert BPE(vocab, [], unk_token="<unk>", byte_fallback=True).tokenize("é") == [(3, 0, 1), (4, 0, 1)]
    assert [p[0] for p in BPE(vocab, [], unk_token="<unk>", byte_fallback=True).tokenize("è")] == [0]


def test_a_character_of_the_byte_alphabet_that_is_unknown_falls_back_on_its_own_bytes():
    vocab = dict.fromkeys(["a", "Ġ", *(f"<0x{byte:02X}>" for byte in range(256))])
    document = {
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(vocab)}, "merges": [], "byte_fallback": True},
    }
    encoding = Tokenizer.from_json(document).encode("aé")
    assert encoding.tokens == ["Ġ", "a", "<0xC3>", "<0x83>", "<0xC2>", "<0xA9>"]
    assert encoding.offsets == [(0, 1), (0, 1), *[(1, 2)] * 4]


def test_unknown_token_must_be_known():
    with pytest.raises(TokenizerError, match="unk_token"):
        BPE({"a": 0}, [], unk_token="<unk>").tokenize("b")


def test_affixes():
    model = BPE({"a": 0, "##b": 1, "a##": 2, "ab": 3, "##c": 4}, [["a", "##b"]], continuing_subword_prefix="##")
    assert [i for i, _, _ in model.tokenize("abc")] == [3, 4]
    model = BPE({"a": 0, "b</w>": 1, "ab</w>": 2, "a</w>": 3}, [["a", "b</w>"]], end_of_word_suffix="</w>")
    assert [i for i, _, _ in model.tokenize("ab")] == [2]
    assert [i for i, _, _ in model.tokenize("a")] == [3]


def test_ignore_merges_takes_whole_words():
    document = byte_level_document([("a", "b"), ("c", "d"), ("ab", "c"), ("abc", "d")])
    document["model"]["merges"].pop()
    assert Tokenizer.from_json(document).encode("abcd").tokens == ["ab", "cd"]
    document["model"]["ignore_merges"] = True
    assert Tokenizer.from_json(document).encode("abcd").tokens == ["abcd"]


@pytest.mark.parametrize("unit", ["a", "^", "_", " "])
def test_long_runs_take_linear_time(unit):
    merges = [(unit * 2**k, unit * 2**k) for k in range(6)] if unit != " " else []
    tokenizer = Tokenizer.from_json(byte_level_document(merges))
    seconds = {}
    for count in (100_000, 400_000):
        text = unit * count
        start = time.process_time()
        ids = tokenizer.encode(text).ids
        seconds[count] = time.process_time() - start
        assert tokenizer.decode(ids) == text
        assert len(ids) == (-(-count // 64) if merges and count % 64 == 0 else len(ids))
    assert seconds[400_000] < 8 * seconds[100_000] + 0.5


def test_million_equal_characters():
    tokenizer = Tokenizer.from_json(byte_level_document([("a" * 2**k, "a" * 2**k) for k in range(8)]))
    start = time.process_time()
    assert len(tokenizer.encode("a" * 2**20).ids) == 2**12
    assert time.process_time() - start < 20


def test_random_letters_without_a_space():
    rng = random.Random(1)
    text = "".join(rng.choice("abcdefgh") for _ in range(100_000))
    tokenizer = Tokenizer.from_json(byte_level_document([("a", "b"), ("c", "d"), ("ab", "cd"), ("e", "f")]))
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_ids_beyond_the_limit_are_refused():
    with pytest.raises(TokenizerError, match="2147483647"):
        BPE({"a": 2**31 - 1}, [])


def test_offsets_behind_dropped_bytes_count_in_the_spelled_word():
    document = byte_level_document()
    del document["model"]["vocab"]["Ġ"]
    assert Tokenizer.from_json(document).encode(" 00").offsets == [(0, 1), (0, 1)]


def test_a_word_is_looked_up_whole_where_no_merge_reaches_across():
    vocab = {"o": 0, "n": 1, "on": 2, "x": 3, "<unk>": 4}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": "<unk>", "ignore_merges": True}
    tokenizer = Tokenizer.from_json({"model": model})
    assert tokenizer.encode("onx").ids == tokenizer.pipeline.aligned("onx", True).ids == [0, 1, 3]
    assert tokenizer.encode("on").ids == [2]
