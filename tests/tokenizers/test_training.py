"""The trainer, what it writes, and merges explained."""

import json

import pytest

from cygnet import Tokenizer
from cygnet.errors import OptionError, TokenizerError
from cygnet.tokenizers import explain, train_bpe
from cygnet.tokenizers.trainer import learn_merges


def test_most_frequent_pair_first():
    assert learn_merges(["aab aab ab"], 1) == [("a", "b")]


def test_ties_go_by_spelling_whatever_the_order():
    assert learn_merges(["xy ab", "xy ab"], 1, 1) == learn_merges(["ab xy", "ab xy"], 1, 1)


def test_overlapping_pairs_are_merged_from_the_left():
    assert learn_merges(["aaa aaa aaa"], 2) == [("a", "a"), ("aa", "a")]


def test_special_tokens_come_first_and_sizes_hold(tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer = train_bpe(["low lower lowest"] * 3, vocab_size=270, special_tokens=["<s>", "</s>"], path=path)
    assert tokenizer.special_tokens == {"<s>": 0, "</s>": 1}
    assert tokenizer.vocab_size <= 270
    again = Tokenizer.from_file(path)
    for text in ("lowest é 日本", "<s>low</s>"):
        assert again.encode(text).ids == tokenizer.encode(text).ids
        assert again.decode(again.encode(text).ids, skip_special_tokens=False) == text
    with pytest.raises(OptionError, match="258"):
        train_bpe(["a"], vocab_size=257, special_tokens=["<s>", "</s>"])


def test_another_library_reads_the_file(tmp_path):
    reference = pytest.importorskip("tokenizers", minversion="0.15")
    path = tmp_path / "tokenizer.json"
    tokenizer = train_bpe(["the cat sat on the mat", "the rat ate the hat"], vocab_size=290, special_tokens=["<s>"], path=path)
    other = reference.Tokenizer.from_file(str(path))
    for text in ("the cat ate the mat", "hats <s> é"):
        assert other.encode(text).ids == tokenizer.encode(text).ids


def test_explained_steps_lead_to_the_tokens():
    tokenizer = train_bpe(["un un", "happ happ", "iness iness"], vocab_size=300)
    (word,) = explain(tokenizer, "unhappiness")
    assert word.symbols == list("unhappiness")
    assert word.tokens == ["un", "happ", "iness"] == tokenizer.encode("unhappiness").tokens
    assert word.ids == tokenizer.encode("unhappiness").ids
    assert all(step.left + step.right in step.symbols for step in word.steps)
    assert "un + happ + iness" in tokenizer.explain("unhappiness")


def test_long_words_are_not_explained_step_by_step():
    tokenizer = train_bpe(["un un"], vocab_size=300)
    (word,) = explain(tokenizer, "un" * 5000)
    assert word.tokens == ["un"] * 5000 and not word.steps and word.ids == tokenizer.encode("un" * 5000).ids
    assert len(tokenizer.explain("un" * 5000)) < 100_000 and "merges are not shown" in tokenizer.explain("un" * 5000)


def test_only_merges_can_be_explained():
    document = {"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}
    with pytest.raises(TokenizerError, match="WordLevel"):
        explain(Tokenizer.from_json(json.dumps(document)), "a")
