"""Copies of tokenizers, in this process and in others."""

import copy
import json
import multiprocessing
import pickle

import pytest
from tokenizer_documents import byte_level_document, word_document

from cygnet import Tokenizer
from cygnet.errors import CopyError
from cygnet.tokenizers import Truncation
from cygnet.tokenizers.wordlevel import WordLevel

TEXT = "the hat <end> of the thé"


def made(maker, tmp_path):
    document = byte_level_document([("t", "h"), ("th", "e")], added=["<end>"])
    if maker == "from_json":
        return Tokenizer.from_json(document)
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    return getattr(Tokenizer, maker)(tmp_path)


def pickled(tokenizer):
    return pickle.loads(pickle.dumps(tokenizer))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("maker", ["from_json", "from_file", "from_pretrained"])
def test_a_copy_is_equal_and_apart(tmp_path, maker, again):
    tokenizer = made(maker, tmp_path)
    tokenizer.truncation = Truncation(7)
    tokenizer.settings["pad_token"] = "<pad>"
    tokenizer.end_texts_with(3)
    other = again(tokenizer)
    assert other.encode(TEXT).ids == tokenizer.encode(TEXT).ids and len(other.encode(TEXT)) == 7 and other.encode("a").ids[-1] == 3
    assert other.encode("the").offsets == tokenizer.encode("the").offsets
    assert other.settings == tokenizer.settings and other.eos_id == tokenizer.eos_id
    other.settings["pad_token"], other.truncation = "x", None
    assert tokenizer.settings["pad_token"] == "<pad>" and len(tokenizer.encode(TEXT)) == 7


def test_a_pool_of_processes(tmp_path):
    tokenizer = made("from_file", tmp_path)
    texts = [TEXT * n for n in range(6)]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(tokenizer.count, texts) == [tokenizer.count(text) for text in texts]


def test_one_put_together_by_hand_says_why_it_cannot():
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "a": 1}, "[UNK]"))
    assert copy.deepcopy(tokenizer).encode("a").ids == [1]
    with pytest.raises(CopyError, match="put together from stages"):
        pickle.dumps(tokenizer)


def test_a_copy_of_a_document_that_has_no_file():
    tokenizer = Tokenizer.from_json(word_document(["?", "a"]))
    assert copy.copy(tokenizer).encode("a").ids == [1]
