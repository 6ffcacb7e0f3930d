"""A few texts through every pre-tokenizer name of GGUF files beside llama.cpp; compare_gguf_names.py runs as many as you like.

CYGNET_PEER_TEXTS sets how many.
"""

import os

import pytest

pytest.importorskip("llama_cpp")

from compare_gguf_names import compare_vocabulary, metadata

from cygnet.tokenizers import gguf_split

TEXTS = int(os.environ.get("CYGNET_PEER_TEXTS", "40"))


@pytest.mark.parametrize("name", gguf_split.known_names())
def test_same_as_llama_cpp(name):
    found = compare_vocabulary(metadata(name), TEXTS, seed=1)
    if found is None:
        pytest.skip("the library does not know the name")
    assert found == []


@pytest.mark.parametrize("values", [{"add_bos_token": False}, {"add_bos_token": True, "add_eos_token": True, "eos_token_id": 4}])
@pytest.mark.parametrize("name", ["gemma4", "llama3", "gpt-2"])
def test_marks_around_the_text(name, values):
    assert compare_vocabulary(metadata(name, **values), 10) == []


@pytest.mark.parametrize("values", [{}, {"normalizer.lowercase": True}, {"normalizer.lowercase": False}])
@pytest.mark.parametrize("pre", ["whitespace", "gpt-2"])
def test_words_between_white_space(pre, values):
    found = compare_vocabulary(metadata(pre, "whitespace", **values), TEXTS)
    if found is None:
        pytest.skip("the library does not know the kind")
    assert found == []


def test_kimi_k2_may_be_without_merges():
    values = metadata("kimi-k2")
    del values["tokenizer.ggml.merges"]
    assert compare_vocabulary(values, 10) == []
