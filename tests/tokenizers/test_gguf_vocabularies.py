"""GGUF vocabularies from metadata made here: each kind, the rules by name, damaged values; llama.cpp's answers where it is installed."""

import random

import numpy as np
import pytest

from cygnet.errors import TokenizerError
from cygnet.formats.gguf_write import write_gguf
from cygnet.tokenizers import gguf_split
from cygnet.tokenizers.aligned import AlignedText
from cygnet.tokenizers.byte_alphabet import BYTE_TO_CHAR
from cygnet.tokenizers.gguf_loader import from_metadata, load
from cygnet.tokenizers.gguf_stages import clean, settled

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def metadata(model, rows, **more):
    """Metadata of a vocabulary of (token, score, type) rows."""
    tokens, scores, types = (list(column) for column in zip(*rows, strict=True))
    return {
        "tokenizer.ggml.model": model,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": np.array(scores, np.float32),
        "tokenizer.ggml.token_type": np.array(types, np.int32),
        **{f"tokenizer.ggml.{name}": value for name, value in more.items()},
    }


BYTES = [(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]
LLAMA = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), *BYTES]
LLAMA += [("▁", -1.0, NORMAL), ("a", -2.0, NORMAL), ("▁a", -0.5, NORMAL), ("<tool>", 0.0, USER_DEFINED)]
ALPHABET = [(c, 0.0, NORMAL) for c in BYTE_TO_CHAR]
GPT2 = [*ALPHABET, ("12", 0.0, NORMAL), ("ab", 0.0, NORMAL), ("Ġab", 0.0, NORMAL), ("<|endoftext|>", 0.0, NORMAL)]
MERGES = ["1 2", "a b", "Ġ ab"]


def gpt2(pre="gpt-2", **more):
    return from_metadata(metadata("gpt2", GPT2, merges=MERGES, pre=pre, **more))


def test_merges_are_read_where_they_lie_in_the_file(tmp_path):
    rows = {"general.architecture": "gpt2", **metadata("gpt2", GPT2, merges=MERGES, pre="gpt-2")}
    write_gguf(tmp_path / "vocab.gguf", {}, rows)
    from_file, from_lists = load(tmp_path / "vocab.gguf"), from_metadata(rows)
    for text in ("ab ab 12", "ba 21 abab", ""):
        assert from_file.encode(text).ids == from_lists.encode(text).ids
    assert [from_file.model.merges[i] for i in range(3)] == [from_lists.model.merges[i] for i in range(3)]


@pytest.mark.parametrize("merge", ["a b c", "ab", "", "a zz", "zz a", "b a", "a b " + "b" * 5000])
def test_wrong_merges_of_a_file_are_named(tmp_path, merge):
    write_gguf(tmp_path / "vocab.gguf", {}, {"general.architecture": "gpt2", **metadata("gpt2", GPT2, merges=["1 2", merge], pre="gpt-2")})
    with pytest.raises(TokenizerError, match=r"merges\[1\]"):
        load(tmp_path / "vocab.gguf")


def test_llama_kind():
    tokenizer = from_metadata(metadata("llama", LLAMA))
    assert tokenizer.encode("aé").ids == [1, 261, 3 + 0xC3, 3 + 0xA9]
    assert tokenizer.encode("a<s>a<tool>a", add_special_tokens=False).ids == [261, 1, 261, 262, 261]
    assert tokenizer.encode("<s>", add_special_tokens=False, parse_special=False).ids[0] == 259
    assert tokenizer.encode("").ids == [1]
    assert tokenizer.pipeline.aligned("a é", True).ids == tokenizer.encode("a é", add_special_tokens=False).ids


def test_llama_keeps_runs_of_spaces():
    tokenizer = from_metadata(metadata("llama", LLAMA))
    for text in ("a  a", "  a", "a\n\n   a "):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids) == text
    assert tokenizer.encode("a  a").ids != tokenizer.encode("a a").ids


@pytest.mark.parametrize("kind, rows, more", [("llama", LLAMA, {}), ("gpt2", GPT2, {"merges": MERGES, "pre": "gpt-2"})])
def test_a_token_of_nul(tmp_path, kind, rows, more):
    write_gguf(tmp_path / "vocab.gguf", {}, {"general.architecture": kind, **metadata(kind, [*rows, ("\0", 0.0, USER_DEFINED)], **more)})
    tokenizer = load(tmp_path / "vocab.gguf")
    assert tokenizer.id_to_token(len(rows)) == "\0"
    assert tokenizer.encode("\0\0", add_special_tokens=False).ids[-2:] == [len(rows)] * 2
    assert tokenizer.decode(tokenizer.encode("a\0\0", add_special_tokens=False).ids) == "a\0\0"


def test_llama_decode_takes_one_space_from_the_first_token_alone():
    tokenizer = from_metadata(metadata("llama", LLAMA))
    assert tokenizer.decode([261, 261]) == "a a"
    assert tokenizer.decode([1, 261]) == " a"
    assert tokenizer.decode([1, 261], skip_special_tokens=False) == "<s> a"
    assert tokenizer.decode([3 + 0xE5, 3 + 0x8F, 260]) == b"\xe5\x8fa".decode("utf-8", "replace")


def test_switches_of_the_file_win():
    rows = metadata("llama", LLAMA, add_bos_token=False, add_eos_token=True, add_space_prefix=False, eos_token_id=2)
    assert from_metadata(rows).encode("a").ids == [260, 2]


def test_gpt2_kind():
    tokenizer = gpt2()
    assert [tokenizer.id_to_token(i) for i in tokenizer.encode("ab ab12<|endoftext|>").ids] == ["ab", "Ġab", "12", "<|endoftext|>"]
    assert gpt2("smollm").encode("12").tokens == ["1", "2"]
    assert tokenizer.decode(tokenizer.encode("a , b's é").ids) == "a, b's é"
    assert gpt2("qwen2").decode(tokenizer.encode("a , b").ids) == "a , b"


def test_bytes_without_a_token_keep_their_neighbours_apart():
    rows = [row for row in GPT2 if row[0] != BYTE_TO_CHAR[0x1D]]
    tokenizer = from_metadata(metadata("gpt2", rows, merges=MERGES, pre="gpt-2"))
    for text in ("a\x1db", "ab\x1d\x1d ab", "\x1d"):
        encoding = tokenizer.encode(text)
        assert "".join(encoding.tokens) == text.replace("\x1d", "").replace(" ", "Ġ")
        assert ("ab" in encoding.tokens) == ("ab" in text)
        assert encoding.ids == tokenizer.pipeline.aligned(text, True).ids == tokenizer.encode_batch([text])[0].ids


def test_characters_of_unicode_16_are_of_no_class():
    tokenizer = gpt2("llama-bpe")
    apart = tokenizer.pre_tokenizer.split(AlignedText.of("1\U000116e3.r"))
    assert [len(word) for word in apart] == [1, 5, 1]
    assert tokenizer.encode("ab\u1c89", add_special_tokens=False).ids == tokenizer.pipeline.aligned("ab\u1c89", True).ids


def test_end_marks_are_special_by_their_spelling():
    tokenizer = gpt2()
    end = tokenizer.token_to_id("<|endoftext|>")
    assert tokenizer.settings["end_of_generation_ids"] == [11, end]
    assert tokenizer.decode([end]) == ""
    assert end not in tokenizer.encode("<|endoftext|>", parse_special=False).ids


def test_phi3_takes_the_space_after_special_tokens():
    rows = metadata("llama", [*LLAMA, ("<|end|>", 0.0, CONTROL)])
    assert from_metadata(rows).encode("<|end|> \na", add_special_tokens=False).ids[0:2] == [263, 259]
    phi3 = from_metadata({**rows, "general.name": "Phi3"})
    assert phi3.encode("<|end|> \na", add_special_tokens=False).ids == [263, 261]
    for text in ("<|end|> \u2003a", "<|end|>\x85a"):
        ids = phi3.encode(text, add_special_tokens=False).ids
        assert ids == phi3.pipeline.aligned(text, True).ids
        assert phi3.decode(ids, skip_special_tokens=False).replace(" ", "") == text.replace(" ", "")


def test_bert_kind():
    rows = [("[PAD]", 0.0, CONTROL), ("[UNK]", 0.0, CONTROL), ("[CLS]", 0.0, CONTROL), ("[SEP]", 0.0, CONTROL)]
    rows += [(t, 0.0, NORMAL) for t in ("▁un", "happy", "▁e", "▁,", "▁漢")]
    ids = {"bos_token_id": 2, "seperator_token_id": 3, "unknown_token_id": 1, "padding_token_id": 0}
    tokenizer = from_metadata(metadata("bert", rows, **ids))
    assert tokenizer.encode("Unhappy,é漢x").ids == [2, 4, 5, 7, 6, 8, 1, 3]
    assert tokenizer.encode("e", "e").type_ids == [0, 0, 0, 1, 1]
    assert from_metadata(metadata("bert", rows, **ids, **{"normalizer.lowercase": False})).encode("Un", add_special_tokens=False).ids == [1]


def test_bert_lane_equals_the_stages():
    draw = random.Random(5)
    rows = [("[UNK]", 0.0, CONTROL), ("[CLS]", 0.0, CONTROL), ("[SEP]", 0.0, CONTROL)]
    rows += [(t, 0.0, NORMAL) for t in ("▁a", "a", "▁e", "i", "▁,", "▁漢", "▁ᄒ")]
    for lowercase in (True, False):
        switches = {"normalizer.lowercase": lowercase, "bos_token_id": 1, "seperator_token_id": 2, "unknown_token_id": 0}
        tokenizer = from_metadata(metadata("bert", rows, **switches))
        assert tokenizer.pipeline.runner is not None
        for _ in range(500):
            text = "".join(draw.choices("aAeéİi,漢한 \u0301\u0085\u3000\0\ufffd\ue000$€~\x7f…", k=8))
            assert tokenizer.encode(text, add_special_tokens=False).ids == tokenizer.pipeline.aligned(text, True).ids, text


def test_t5_kind():
    rows = [("<pad>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), ("<unk>", 0.0, UNKNOWN), ("▁", -2.0, NORMAL), ("▁a", -1.0, NORMAL), ("a", -3.0, NORMAL)]
    tokenizer = from_metadata(metadata("t5", rows, remove_extra_whitespaces=True))
    assert tokenizer.encode("  a  xy ").ids == [4, 3, 2, 1]
    assert tokenizer.encode("").ids == [1]


@pytest.mark.parametrize("name", gguf_split.known_names())
def test_every_pre_tokenizer_name_keeps_the_text(name):
    split = gguf_split.split_of(name).pre_tokenizer()
    text = "I'll 'LL be 1234567 foo_BAR!! 你好 ab\u0301 \r\n\n  x\u3000 $5"
    words = split.split(AlignedText.of(text))
    assert [w.spans[0][0] for w in words] == sorted(w.spans[0][0] for w in words)
    spelled = gguf_split.split_of(name).byte_level
    assert "".join(w.text for w in words) == ("".join(BYTE_TO_CHAR[b] for b in text.encode()) if spelled else text)


@pytest.mark.parametrize(
    "text, cleaned",
    [("a . b ? c", "a. b? c"), ("do n't 's", "do n't's"), ("a ' b", "a'b"), ("we 're I 'm it 'd", "we're I'm it 'd"), (" .", "."), ("", "")],
)
def test_cleaning(text, cleaned):
    assert clean(text) == cleaned


def test_cleaning_in_a_stream_equals_cleaning_of_all():
    draw = random.Random(3)
    tokenizer = gpt2()
    for _ in range(400):
        ids = tokenizer.encode("".join(draw.choices([" ", "'", "s", "re", "m", ".", ",", "?", "abc", "é"], k=12))).ids
        stream = tokenizer.stream_decoder()
        assert "".join([stream.push(i) for i in ids]) + stream.flush() == tokenizer.decode(ids)
    assert settled("we 're abc d") == 10


@pytest.mark.parametrize(
    "changes, place",
    [
        ({"tokenizer.ggml.model": "plamo2"}, "tokenizer.ggml.model 'plamo2'"),
        ({"tokenizer.ggml.model": 3}, "tokenizer.ggml.model must be str"),
        ({"tokenizer.ggml.pre": "nope"}, "tokenizer.ggml.pre 'nope'"),
        ({"tokenizer.ggml.tokens": ["a", 3]}, "tokenizer.ggml.tokens must be a list of strings"),
        ({"tokenizer.ggml.tokens": ["a", "a"]}, r"tokens\[0\] 'a' is there twice"),
        ({"tokenizer.ggml.token_type": np.zeros(3, np.int32)}, "token_type must hold a number for each"),
        ({"tokenizer.ggml.scores": np.full(260, np.nan, np.float32)}, "scores holds a number that is not finite"),
        ({"tokenizer.ggml.merges": ["a b c"]}, r"merges\[0\]"),
        ({"tokenizer.ggml.merges": ["a zz"]}, r"merges\[0\]"),
        ({"tokenizer.ggml.merges": None}, "merges is missing"),
        ({"tokenizer.ggml.add_bos_token": "yes"}, "add_bos_token must be bool"),
        ({"tokenizer.ggml.eos_token_id": "2"}, "eos_token_id must be int"),
    ],
)
def test_damaged_metadata_names_the_key(changes, place):
    rows = {**metadata("gpt2", GPT2, merges=MERGES, pre="gpt-2"), **changes}
    with pytest.raises(TokenizerError, match=place):
        from_metadata({k: v for k, v in rows.items() if v is not None})


def test_ids_out_of_range_are_as_if_not_there():
    assert gpt2(eos_token_id=10_000).settings["eos_token"] == GPT2[11][0]


def test_agrees_with_llama_cpp(conformance, unpacked):
    """The vectors that llama.cpp publishes beside its vocabularies: texts, and ids without special tokens."""
    from cygnet.tokenizers import Tokenizer

    checked = 0
    for folder in sorted((conformance / "tokenizers").glob("gguf-*")):
        inputs, outputs = folder / "llamacpp.inp", folder / "llamacpp.out"
        if not inputs.is_file():
            continue
        tokenizer = Tokenizer.from_file(unpacked(next(folder.glob("vocab.gguf*"))))
        texts = inputs.read_text(encoding="utf-8").split("\n__ggml_vocab_test__\n")
        for text, ids in zip(texts, outputs.read_text().splitlines(), strict=False):
            got = tokenizer.encode(text, add_special_tokens=False, parse_special=False).ids
            assert got == [int(i) for i in ids.split()], (folder.name, text)
            checked += 1
    assert checked > 400


def test_of_overlapping_marks_the_longest_stands():
    marks = [(t, 0.0, USER_DEFINED) for t in (">>A<<", "<|end|>", "<|", "xyx", "\n\n", "\n\n\n", "yxyzz")]
    tokenizer = from_metadata(metadata("gpt2", [*ALPHABET, *marks], merges=[], pre="gpt-2"))
    assert tokenizer.pipeline.runner is not None
    texts = {">>A<<|end|>": [">>A<", "<|end|>"], ">>A<<|": [">>A<<", "|"], ">>A<< <|end|>": [">>A<<", "Ġ", "<|end|>"], "xyxyzz": ["x", "yxyzz"]}
    texts |= {"xyxyx": ["xyx", "y", "x"], "\n" * 5: ["\n\n\n", "\n\n"]}
    for text, tokens in texts.items():
        wanted = [c for t in tokens for c in ([t] if tokenizer.token_to_id(t) is not None else t)]
        for got in (tokenizer.encode(text).tokens, tokenizer.encode_batch([text, "a"])[0].tokens):
            assert "".join(got) == "".join(tokens) and [t for t in got if len(t) > 1] == [t for t in wanted if len(t) > 1]
        assert tokenizer.encode(text).ids == tokenizer.pipeline.aligned(text, True).ids
    assert tokenizer.encode(">>A<<|end|>").offsets[-1] == (4, 11)


def test_more_overlaps_than_can_be_looked_for():
    marks = [(f"<{i}<", 0.0, USER_DEFINED) for i in range(300)]
    tokenizer = from_metadata(metadata("gpt2", [*ALPHABET, *marks], merges=[], pre="gpt-2"))
    assert tokenizer.encode("a<1<22<").tokens == ["a", "<", "1", "<22<"]
