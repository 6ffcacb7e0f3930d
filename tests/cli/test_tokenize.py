"""`cygnet tokenize` on a small byte pair vocabulary."""

import json

import pytest


@pytest.fixture
def source(tmp_path):
    """A tokenizer that knows "a", "b", "ab" and a special token."""
    document = {
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<end>": 3}, "merges": ["a b"]},
        "added_tokens": [{"id": 3, "content": "<end>", "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}],
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    return str(tmp_path)


def test_pieces(run, source):
    status, out, err = run("tokenize", "-m", source, "aba<end>")
    assert (status, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert rows == [["id", "token", "text"], ["2", "'ab'", "'ab'"], ["0", "'a'", "'a'"], ["3", "'<end>'", "'<end>'"]]


def test_json_and_count(run, source):
    assert json.loads(run("tokenize", "-m", source, "--json", "ab")[1]) == {"text": "ab", "ids": [2], "tokens": ["ab"], "offsets": [[0, 2]]}
    assert run("tokenize", "-m", source, "--count", "aba", "b")[1] == "2\n1\n"


def test_special_tokens_as_text(run, source):
    assert 3 not in json.loads(run("tokenize", "-m", source, "--plain", "--json", "a<end>")[1])["ids"]


def test_explain(run, source):
    out = run("tokenize", "-m", source, "--explain", "ab")[1]
    assert "a" in out and "ab" in out and len(out.splitlines()) > 1
