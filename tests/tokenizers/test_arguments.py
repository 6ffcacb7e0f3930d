"""Arguments that are neither texts nor token ids: refused by name, not read as something else."""

import os
from enum import Enum

import numpy as np
import pytest
from tokenizer_documents import byte_level_document, word_document

from cygnet import Tokenizer
from cygnet.errors import OptionError, TokenizerError


@pytest.fixture(params=["table", "stages"])
def tokenizer(request):
    """One that decodes by table, and one whose decoder has none."""
    return Tokenizer.from_json(byte_level_document() if request.param == "table" else word_document(["?", "a", "b"], decoder={"type": "Fuse"}))


@pytest.mark.parametrize("ids", [[1.5], [True], [-1], [2**70], ["a"], ("a",), [None], [[1]], 3, "12", None, np.array([0.5]), np.array([-1])])
def test_what_are_no_ids(tokenizer, ids):
    with pytest.raises(OptionError, match="token id"):
        tokenizer.decode(ids)


def test_ids_of_all_kinds_of_integers(tokenizer):
    wanted = tokenizer.decode([1, 2, 10**9])
    for ids in ((1, 2), range(1, 3), np.array([1, 2]), [np.int32(1), np.uint8(2)], iter([1, 2])):
        assert tokenizer.decode(ids) == wanted


class Word(str, Enum):
    """Texts whose str() is not what they hold."""

    FIRST = "a b"
    SECOND = "b é"


@pytest.mark.parametrize("subclass", [np.str_, Word])
def test_texts_of_subclasses_are_read_as_what_they_hold(tokenizer, subclass):
    first, second = subclass("a b"), subclass("b é")
    assert tokenizer.encode(first).ids == tokenizer.encode("a b").ids
    assert tokenizer.encode(first, second).ids == tokenizer.encode("a b", "b é").ids
    assert tokenizer.encode(second, literal=[(0, 1)]).tokens == tokenizer.encode("b é", literal=[(0, 1)]).tokens
    assert [e.offsets for e in tokenizer.encode_batch([first, second])] == [e.offsets for e in tokenizer.encode_batch(["a b", "b é"])]
    assert tokenizer.encode_batch([(first, second)])[0].ids == tokenizer.encode("a b", "b é").ids


@pytest.mark.parametrize("token_id", [1.5, True, "1", None])
def test_what_is_no_id(tokenizer, token_id):
    with pytest.raises(OptionError, match="no token id"):
        tokenizer.id_to_token(token_id)
    with pytest.raises(OptionError, match="a token is text"):
        tokenizer.token_to_id(3)


@pytest.mark.parametrize("token_id", [1.5, "1", None, [1]])
def test_a_stream_takes_ids_alone(tokenizer, token_id):
    with pytest.raises(OptionError, match="no token id"):
        tokenizer.stream_decoder().push(token_id)
    assert tokenizer.stream_decoder().push(2**70) == ""


@pytest.mark.parametrize("value", [None, -1, 1.5, "3", [], True, float("nan")])
def test_lengths_are_whole_numbers(tokenizer, value):
    if value is not None:
        with pytest.raises(OptionError, match="max_length"):
            tokenizer.encode("a b", max_length=value)
    with pytest.raises(OptionError, match="stride"):
        tokenizer.encode_batch(["a b"], max_length=np.int64(2), stride=value)


def test_huge_lengths(tokenizer):
    assert tokenizer.encode("a b", max_length=2**62, stride=2**62).ids == tokenizer.encode("a b").ids
    with pytest.raises(OptionError, match="stride"):
        tokenizer.encode("a b a b a b", max_length=2, stride=2**62)


@pytest.mark.parametrize("literal", [1, "ab", [1], [(1,)], [("a", "b")], [(0, float("inf"))], {"a": 1}])
def test_what_are_no_spans(tokenizer, literal):
    with pytest.raises(OptionError, match="literal"):
        tokenizer.encode("abc", literal=literal)


@pytest.mark.parametrize("parse_special", [None, 0, 1, "", "x", []])
def test_switches_are_true_or_false(tokenizer, parse_special):
    wanted = tokenizer.encode("a b", parse_special=bool(parse_special)).ids
    assert tokenizer.encode("a b", parse_special=parse_special).ids == tokenizer.encode_batch(["a b"], parse_special=parse_special)[0].ids == wanted


@pytest.mark.parametrize("encodings, rule", [(None, None), ([1], None), ("ab", None), (["a"], None), ([], 3), ([], "x")])
def test_what_cannot_be_padded(tokenizer, encodings, rule):
    with pytest.raises(OptionError, match="wanted"):
        tokenizer.pad(encodings, rule)


@pytest.mark.parametrize("batch", [None, 3, "12", b"1", [1], ["a"]])
def test_what_is_no_batch_of_ids(tokenizer, batch):
    with pytest.raises(OptionError, match="token id"):
        tokenizer.decode_batch(batch)


@pytest.mark.parametrize("text", [None, 3, b"a", ["a"]])
def test_what_is_no_text(tokenizer, text):
    with pytest.raises(OptionError, match="a text"):
        tokenizer.encode(text)
    if text is not None:
        with pytest.raises(OptionError, match="a text"):
            tokenizer.encode("a", text)
        with pytest.raises(OptionError, match="a text"):
            tokenizer.encode_batch(["a", text])


@pytest.mark.parametrize("texts", ["abc", b"abc", None, 3, [("a",)], [("a", "b", "c")], [("a", 3)], [(None, "a")]])
def test_what_is_no_batch(tokenizer, texts):
    with pytest.raises(OptionError):
        tokenizer.encode_batch(texts)


@pytest.mark.parametrize("path", [None, 3, 1.5, b"tokenizer.json", ["tokenizer.json"], {}, os.fsencode])
def test_what_is_no_path(path):
    with pytest.raises(OptionError, match="the path of a tokenizer file or folder is wanted, as text or a Path, not"):
        Tokenizer.from_file(path)


@pytest.mark.parametrize(
    "model",
    [
        {"type": "WordPiece", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]", "continuing_subword_prefix": "\ud800"},
        {"type": "WordPiece", "vocab": {"\udfff": 0, "[UNK]": 1}, "unk_token": "[UNK]", "continuing_subword_prefix": "##"},
    ],
)
def test_documents_with_broken_text(model):
    with pytest.raises(TokenizerError, match="no tokenizer can have"):
        Tokenizer.from_json({"model": model, "pre_tokenizer": {"type": "BertPreTokenizer"}, "normalizer": {"type": "BertNormalizer"}})


def test_documents_with_ids_beyond_all_bounds():
    special = {"id": "[C]", "ids": [2**63], "tokens": ["[C]"]}
    single = [{"SpecialToken": {"id": "[C]", "type_id": 0}}]
    template = {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": {"[C]": special}}
    with pytest.raises(TokenizerError, match="ids from 0 to"):
        Tokenizer.from_json(word_document(["?", "a"], post_processor=template))
