"""RWKV's World vocabularies of GGUF files beside a plain search for the longest token, and beside llama.cpp where it is installed."""

import importlib.util
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cygnet.errors import TokenizerError
from cygnet.tokenizers.gguf_loader import from_metadata
from cygnet.tokenizers.gguf_rwkv import unescaped

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
WORDS = ["\n\n", " the", "the", "'\"", "\"'", "\\n", "\t\t", "é", "ée", "日本", " 日", "😀", "</", "<s", "aaa", "aaaaa", "1", "12", " \r\n"]
PARTS = [b"x\xc3", b"\xe6\x97", b"\x97\xa5", b"\xa9e", b"\xf0\x9f", b"\x98\x80\xf0"]
DATA = [b"<s>", *(bytes([byte]) for byte in range(256)), *(word.encode() for word in WORDS if len(word.encode()) > 1), *PARTS]


def written(data):
    """Bytes as Python writes them, which is how the format has them."""
    return repr(data)[2:-1]


def values(**more):
    tokens = [*map(written, DATA), "<tool>", "[PAD1]", "[PAD2]"]
    types = [CONTROL, *[NORMAL] * (len(DATA) - 1), USER_DEFINED, UNUSED, UNUSED]
    return {"model": "rwkv", "tokens": tokens, "token_type": np.array(types, np.int32), **more}


def rwkv(**more):
    return from_metadata({f"tokenizer.ggml.{name}": value for name, value in values(**more).items()})


def greedy(text):
    """Ids by trying every token at every place."""
    data, out = text.encode(), []
    tokens = {token: i for i, token in enumerate([*DATA, b"<tool>", b"[PAD1]", b"[PAD2]"])}
    while data:
        longest = max((token for token in tokens if data.startswith(token)), key=len)
        out.append(tokens[longest])
        data = data[len(longest) :]
    return out


TEXTS = st.lists(st.one_of(st.sampled_from([*WORDS, "<s>", "<tool>", "[PAD1]", "\0"]), st.text(max_size=3)), max_size=12).map("".join)


@given(TEXTS)
def test_takes_the_longest_token_at_each_place(text):
    tokenizer = rwkv()
    encoding = tokenizer.encode(text, parse_special=False)
    assert encoding.ids == greedy(text) == tokenizer.pipeline.aligned(text, False).ids
    assert tokenizer.decode(encoding.ids, skip_special_tokens=False) == text
    stream = tokenizer.stream_decoder(skip_special_tokens=False)
    assert "".join([stream.push(i) for i in encoding.ids]) + stream.flush() == text


def test_a_token_of_part_of_a_character_stands_for_all_of_it():
    encoding = rwkv().encode("a日x")
    assert [DATA[i] for i in encoding.ids] == [b"a", b"\xe6\x97", b"\xa5", b"x"]
    assert encoding.offsets == [(0, 1), (1, 2), (1, 2), (2, 3)] and encoding.tokens == ["a", "\\xe6\\x97", "\\xa5", "x"]


@given(st.binary(max_size=12))
def test_escapes_are_those_of_python(data):
    assert unescaped(written(data)) == data


@pytest.mark.parametrize("token", ["\\", "a\\", "\\x", "\\x1", "\\xAB", "\\xg0"])
def test_what_is_no_escape_is_refused(token):
    tokens = [*values()["tokens"][:-1], token]
    with pytest.raises(TokenizerError, match="holds a wrong escape"):
        rwkv(tokens=tokens)


def test_a_vocabulary_without_a_byte_is_refused():
    tokens = [token if token != "\\xff" else "[PAD3]" for token in values()["tokens"]]
    with pytest.raises(TokenizerError, match=r"lacks the byte b'\\xff'"):
        rwkv(tokens=tokens)


@pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None, reason="llama_cpp is not installed")
@pytest.mark.parametrize("more", [{}, {"add_bos_token": True, "add_eos_token": True, "bos_token_id": 0, "eos_token_id": 0}, {"eot_token_id": 261}])
def test_same_as_llama_cpp(more, monkeypatch):
    import compare_gguf_names

    draw = random.Random(4)
    made = ["".join(draw.choices([*WORDS, "<s>", "<tool>", "[PAD1]", "x", " "], k=draw.randint(1, 9))) for _ in range(60)]
    strange = list(compare_gguf_names.texts(60, 2))
    monkeypatch.setattr(compare_gguf_names, "texts", lambda count, seed: made + strange)
    assert compare_gguf_names.compare_vocabulary(compare_gguf_names.of_model(values(**more)), 0) == []
