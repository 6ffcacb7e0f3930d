"""Spans of a text in which the spelling of control tokens is only text."""

import pytest

from cygnet.tokenizers import Tokenizer


def tokenizer(**flags):
    words = ["[UNK]", "<end>", "</think>", "two words", "a", "b", "<", "end", ">"]
    added = [("<end>", True), ("</think>", False), ("two words", False)]
    return Tokenizer.from_json(
        {
            "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}, "unk_token": "[UNK]"},
            "pre_tokenizer": {"type": "Split", "pattern": {"Regex": r"[<>]|\w+"}, "behavior": "Isolated", "invert": False},
            "added_tokens": [
                {"id": words.index(c), "content": c, "special": s, **dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized"], False), **flags}
                for c, s in added
            ],
        }
    )


def tokens(text, *spans, **flags):
    return [token for token in tokenizer(**flags).encode(text, literal=spans).tokens if token != "[UNK]"]


def test_marks_in_a_span_are_text():
    assert tokens("a<end>b") == ["a", "<end>", "b"]
    assert tokens("a<end>b", (0, 7)) == ["a", "<", "end", ">", "b"]
    assert tokens("<end>a<end>", (5, 11)) == ["<end>", "a", "<", "end", ">"]


def test_a_mark_that_reaches_into_a_span_is_text():
    assert tokens("a<end>b", (3, 4)) == ["a", "<", "end", ">", "b"]
    assert tokens("a<end>b", (0, 1), (6, 7)) == ["a", "<end>", "b"]


def test_marks_that_are_not_special():
    assert tokens("</think>") == ["</think>"]
    assert "</think>" not in tokens("</think>", (0, 8))


def test_words_added_to_the_vocabulary_stay_tokens():
    assert tokens("a two words b", (0, 13)) == ["a", "two words", "b"]


@pytest.mark.parametrize("flags", [{"normalized": True}, {"rstrip": True}, {"lstrip": True}])
def test_matching_rules(flags):
    found = tokens("a <end> <end> b", (0, 7), **flags)
    assert [token.strip() for token in found] == ["a", "<", "end", ">", "<end>", "b"]
