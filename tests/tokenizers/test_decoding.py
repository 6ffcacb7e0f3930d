"""Decoding at once and id by id."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_documents import byte_level_document

from cygnet import Tokenizer
from cygnet.tokenizers import json_stages
from cygnet.tokenizers.decode_table import decode_table

LLAMA = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}
DECODERS = [
    None,
    {"type": "ByteLevel"},
    {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"},
    {"type": "ByteFallback"},
    {"type": "BPEDecoder", "suffix": "</w>"},
    {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
    {"type": "Strip", "content": "x", "start": 1, "stop": 2},
    {"type": "Fuse"},
    LLAMA,
    {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "▁"}]},
    {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "xyx"}, "content": "-"}]},
    {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": "x", "start": 2, "stop": 2}]},
    {"type": "Sequence", "decoders": [{"type": "ByteLevel"}, {"type": "Replace", "pattern": {"Regex": "[xy]+"}, "content": "-"}]},
    {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteLevel"}]},
    {"type": "Sequence", "decoders": [{"type": "BPEDecoder", "suffix": "x"}, {"type": "ByteLevel"}]},
    {"type": "Sequence", "decoders": [{"type": "BPEDecoder", "suffix": "x"}, {"type": "WordPiece", "prefix": "##", "cleanup": True}]},
]
TOKENS = [*"▁a a ##b </w> b</w> Ġc Ã © <0xE4> <0xBD> <0xA0> <0x41> <0x0> ▁ ▁▁ x xy yx .".split(), " '", "n't", "|", "<pad>", "é"]
VOCAB = {t: i for i, t in enumerate(TOKENS)}


@pytest.mark.parametrize("config", DECODERS, ids=lambda c: c and c["type"])
@given(ids=st.lists(st.integers(0, len(TOKENS)), max_size=20))
@settings(max_examples=150, deadline=None)
def test_table_and_stream_equal_the_chain(config, ids):
    tokenizer = Tokenizer.from_json({"model": {"type": "WordLevel", "vocab": VOCAB, "unk_token": "a"}, "decoder": config})
    tokens = [TOKENS[i] for i in ids if i < len(TOKENS)]
    expected = "".join(tokenizer.decoder.chain(tokens)) if config else " ".join(tokens)
    assert tokenizer.decode(ids) == expected
    stream = tokenizer.stream_decoder()
    assert "".join([stream.push(i) for i in ids]) + stream.flush() == expected


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["<0xEA>", "<0xB9>", "<0xB0>"], "깰"),
        (["<0xE5>", "<0x8F>"], "\ufffd\ufffd"),
        (["<0xE5>", "<0x8F>", "a"], "\ufffd\ufffda"),
        (["<0x61>"], "a"),
        (["▁Hello", "▁world"], "Hello world"),
    ],
)
def test_byte_fallback(tokens, text):
    decoder = json_stages.decoder(LLAMA, "decoder")
    assert decoder.decode(tokens) == text
    table = decode_table(decoder, lambda i: tokens[i] if i < len(tokens) else None, set())
    assert table.decode(list(range(len(tokens))), True) == text


def test_only_the_first_token_is_a_byte_where_others_get_a_space():
    decoders = [{"type": "WordPiece", "prefix": "##", "cleanup": False}, {"type": "ByteFallback"}]
    vocab = {"<0x3D>": 0, "<0x41>": 1, "##<0x42>": 2}
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "<0x3D>"}
    tokenizer = Tokenizer.from_json({"decoder": {"type": "Sequence", "decoders": decoders}, "model": model})
    assert tokenizer.decode([0, 1, 2, 0]) == "= <0x41>B <0x3D>"


def test_an_empty_match_behind_another_is_not_replaced():
    decoder = json_stages.decoder({"type": "Replace", "pattern": {"Regex": "b*"}, "content": "-"}, "decoder")
    assert decoder.decode(["abb", "", "b", "c"]) == "-a---c-"


def test_without_byte_fallback_the_text_stays():
    assert json_stages.decoder({"type": "Fuse"}, "decoder").decode(["<0xEA>", "<0xB9>"]) == "<0xEA><0xB9>"


@pytest.mark.parametrize("text", ["Swift 社区非常活跃", "👍🏽", "नमस्ते", "a😀b"])
def test_streaming_never_shows_half_a_character(text):
    tokenizer = Tokenizer.from_json(byte_level_document())
    ids = tokenizer.encode(text).ids
    stream = tokenizer.stream_decoder()
    pieces = [*(stream.push(i) for i in ids), stream.flush()]
    assert "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces)


def test_streaming_cost_does_not_grow():
    tokenizer = Tokenizer.from_json({"model": {"type": "WordLevel", "vocab": VOCAB, "unk_token": "a"}, "decoder": LLAMA})
    rng = random.Random(0)
    ids = [rng.randrange(len(TOKENS)) for _ in range(40_000)]
    stream = tokenizer.stream_decoder()
    times = []
    for i in range(0, len(ids), 4_000):
        start = time.process_time()
        for token_id in ids[i : i + 4_000]:
            stream.push(token_id)
        times.append(time.process_time() - start)
    assert min(times[-3:]) < 3 * min(times[:3]) + 0.01


@pytest.mark.parametrize("text", ["hello !", "a , b", "do n't 's", "x ?", "beginning , and"])
def test_byte_level_round_trip_keeps_spaces(text):
    tokenizer = Tokenizer.from_json(byte_level_document())
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(ids, clean_up=True) != text
    tokenizer.settings["clean_up_tokenization_spaces"] = True
    assert tokenizer.decode(ids) == tokenizer.decode(ids, clean_up=True)
    assert tokenizer.decode(ids, clean_up=False) == text


# The first by tokenizers 0.23, which looks at each token by itself, the second by the clean-up of transformers over the whole text.
@pytest.mark.parametrize(
    "tokens, piecewise, whole",
    [
        (["don", "'", "t", "!"], "don ' t!", "don't!"),
        (["do", "n't", "a", ",", "##y", "?"], "don't a,y?", "don't a,y?"),
        (["I", "'m", ".", "'ve"], "I'm.'ve", "I'm.'ve"),
    ],
)
def test_clean_up_of_words(tokens, piecewise, whole):
    model = {"type": "WordLevel", "vocab": {t: i for i, t in enumerate(tokens)}, "unk_token": tokens[0]}
    ids = list(range(len(tokens)))
    for cleanup in (True, False):
        tokenizer = Tokenizer.from_json({"model": model, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": cleanup}})
        assert tokenizer.decode(ids) == (piecewise if cleanup else " ".join(tokens).replace(" ##", ""))
        assert tokenizer.decode(ids, clean_up=True) == whole


def test_ids_that_are_not_there_are_passed_over():
    tokenizer = Tokenizer.from_json(byte_level_document())
    a = tokenizer.token_to_id("a")
    assert tokenizer.decode([a, 10**6, 2**40, a]) == "aa"
    assert tokenizer.decode(iter([a])) == "a"


@given(st.lists(st.integers(0, 255), max_size=30))
def test_broken_bytes_become_replacement_characters(data):
    tokenizer = Tokenizer.from_json(byte_level_document())
    assert tokenizer.decode(data) == bytes(data).decode(errors="replace")
