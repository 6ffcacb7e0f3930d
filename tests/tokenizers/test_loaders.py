"""Files of other kinds: vocab.json with merges.txt, tiktoken ranks, folders and their settings."""

import base64
import json

import pytest
from tokenizer_documents import byte_level_document

from cygnet import Tokenizer
from cygnet.errors import ModelNotFound, TokenizerError
from cygnet.tokenizers.byte_alphabet import to_bytes

MERGES = [("l", "o"), ("lo", "w"), ("Ġ", "low"), ("e", "r")]


@pytest.fixture
def document():
    return byte_level_document([*MERGES, ("<|", "endoftext|>")])


@pytest.fixture
def gpt2_folder(tmp_path, document):
    vocab = {**document["model"]["vocab"], "<|endoftext|>": 300}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in MERGES), encoding="utf-8")
    return tmp_path


def test_vocab_and_merges(gpt2_folder):
    tokenizer = Tokenizer.from_file(gpt2_folder / "vocab.json")
    assert tokenizer.encode("low lower<|endoftext|>").tokens == ["low", "Ġlow", "er", "<|endoftext|>"]
    assert Tokenizer.from_file(gpt2_folder).encode("low").ids == tokenizer.encode("low").ids
    (gpt2_folder / "renamed.json").write_bytes((gpt2_folder / "vocab.json").read_bytes())
    assert Tokenizer.from_file(gpt2_folder / "renamed.json").encode("low").tokens == ["low"]


def test_merges_must_be_there_and_whole(gpt2_folder):
    (gpt2_folder / "merges.txt").write_bytes(b"l o\nlo\n")
    with pytest.raises(TokenizerError, match=r"merges\[1\]"):
        Tokenizer.from_file(gpt2_folder)
    (gpt2_folder / "merges.txt").write_bytes(b"l \xff\n")
    with pytest.raises(TokenizerError, match="UTF-8"):
        Tokenizer.from_file(gpt2_folder)
    (gpt2_folder / "merges.txt").unlink()
    with pytest.raises(TokenizerError, match="merges.txt"):
        Tokenizer.from_file(gpt2_folder)


def rank_lines(tokens):
    return b"".join(base64.b64encode(t) + b" %d\n" % i for i, t in enumerate(tokens))


def test_tiktoken_ranks(tmp_path):
    tokens = [bytes([b]) for b in range(256)] + [b"lo", b"low", b" low", b"er"]
    path = tmp_path / "small.tiktoken"
    path.write_bytes(rank_lines(tokens))
    with pytest.raises(TokenizerError, match="pat_str"):
        Tokenizer.from_file(path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"pat_str": r"\s?\w+|\s+", "added_tokens_decoder": {"300": {"content": "<|end|>"}}}))
    tokenizer = Tokenizer.from_file(path)
    encoding = tokenizer.encode("low lower<|end|>")
    assert [to_bytes(t) for t in encoding.tokens[:3]] == [b"low", b" low", b"er"]
    assert encoding.ids[-1] == 300
    assert tokenizer.decode(encoding.ids, skip_special_tokens=False) == "low lower<|end|>"


@pytest.mark.parametrize("damage", [b"not base64! 5\n", b"YQ== x\n", b"YQ==\n", b"YQ== 0\n"])
def test_damaged_ranks(tmp_path, damage):
    path = tmp_path / "a.tiktoken"
    path.write_bytes(rank_lines([bytes([b]) for b in range(256)]) + damage)
    with pytest.raises(TokenizerError, match="tiktoken"):
        Tokenizer.from_file(path)


def test_settings_of_a_folder(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(byte_level_document(added=["<s>", "</s>"])))
    config = {
        "bos_token": {"content": "<s>"},
        "eos_token": "</s>",
        "model_max_length": 77,
        "clean_up_tokenization_spaces": True,
        "chat_template": "x",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id) == (256, 257, None)
    assert (tokenizer.model_max_length, tokenizer.chat_template) == (77, "x")
    assert tokenizer.decode(tokenizer.encode("a !").ids) == "a!"
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(TokenizerError, match="tokenizer_config.json"):
        Tokenizer.from_pretrained(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(TokenizerError, match="tokenizer.json"):
        Tokenizer.from_file(tmp_path)
    with pytest.raises(TokenizerError, match="missing.json"):
        Tokenizer.from_file(tmp_path / "missing.json")
    (tmp_path / "odd.bin").write_bytes(b"\x7fELF")
    with pytest.raises(TokenizerError, match="odd.bin"):
        Tokenizer.from_file(tmp_path / "odd.bin")


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("tokenizer.json", "", "tokenizer.json is no valid JSON"),
        ("tokenizer.json", "[]", "tokenizer.json"),
        ("lines.txt", "hello world\n", "a vocab.txt has one token of the vocabulary a line"),
        ("notes", "hello world\n", "of no known kind"),
    ],
)
def test_files_that_are_no_tokenizers(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(TokenizerError, match=message):
        Tokenizer.from_file(tmp_path / name)


def test_names_of_models(gpt2_folder, monkeypatch):
    """from_pretrained takes what cygnet.load takes."""
    monkeypatch.setenv("CYGNET_MODELS", str(gpt2_folder.parent))
    assert Tokenizer.from_pretrained(gpt2_folder.name).encode("low").tokens == ["low"]
    with pytest.raises(ModelNotFound, match="no package 'nope' is installed"):
        Tokenizer.from_pretrained("pkg:nope")
