"""The bytes of tokens: joined, they are the text's own bytes."""

import pytest

from cygnet.errors import TokenizerError
from cygnet.tokenizers import Tokenizer
from cygnet.tokenizers.token_bytes import token_bytes


def bpe(vocab, decoder, added=()):
    added = [
        {"id": i, "content": text, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i, text in added
    ]
    return Tokenizer.from_json({"model": {"type": "BPE", "vocab": vocab, "merges": []}, "decoder": decoder, "added_tokens": added})


def test_byte_level():
    tokenizer = bpe({"a": 0, "Ġb": 1, "Ã": 2, "©": 3, "Ċ": 4}, {"type": "ByteLevel"}, [(5, "<end>")])
    assert token_bytes(tokenizer, 8) == [b"a", b" b", b"\xc3", b"\xa9", b"\n", b"", b"", b""]


def test_visible_spaces_and_byte_tokens():
    vocab = {"a": 0, "▁b": 1, "<0xC3>": 2, "▁": 3, "é": 4}
    for decoder in (
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
    ):
        assert token_bytes(bpe(vocab, decoder), 5) == [b"a", b" b", b"\xc3", b" ", "é".encode()]


def test_words_joined_by_rule_have_no_bytes_of_their_own():
    tokenizer = Tokenizer.from_json(
        {
            "model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2}, "unk_token": "[UNK]", "continuing_subword_prefix": "##"},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        }
    )
    with pytest.raises(TokenizerError, match="rule"):
        token_bytes(tokenizer, 3)
