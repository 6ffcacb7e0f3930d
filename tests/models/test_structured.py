"""Schemas and grammars on a model's own tokenizer."""

import pytest

from cygnet.models.structured import vocabulary_of
from cygnet.tokenizers import Tokenizer

VOCABULARY = {"a": 0, "b": 1, "Ġ": 2, "<end>": 3, "<other>": 4}


def tokenizer(**settings):
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    document = {
        "model": {"type": "BPE", "vocab": VOCABULARY, "merges": []},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [{"id": i, "content": text, **flags} for text, i in VOCABULARY.items() if text.startswith("<")],
    }
    made = Tokenizer.from_json(document)
    made.settings.update(settings)
    return made


def test_end_tokens_of_model_and_tokenizer_and_rows_beyond_the_tokenizer():
    pytest.importorskip("llguidance")
    vocabulary = vocabulary_of(tokenizer(eos_token="<end>"), 8, [4, 3, 99])
    assert vocabulary.tokens == [b"a", b"b", b" ", b"", b"", b"", b"", b""]
    assert vocabulary.end_ids == (4, 3) and vocabulary.special_ids == [3, 4]
    state = vocabulary.regex("ab? b").start()
    for token in (0, 2, 1):
        assert not state.finished
        state.accept(token)
    assert state.finished
