"""Folders whose ids are not those of their SentencePiece file; the ids are those of transformers' classes for the same folders."""

import json

import pytest
from sentencepiece_files import CONTROL, LETTERS, NORMAL, UNKNOWN, model

from cygnet import Tokenizer
from cygnet.errors import TokenizerError

PIECES = [*LETTERS, ("▁the", -3.0, NORMAL), ("de", -3.0, NORMAL), ("f", -4.0, NORMAL), ("r", -4.0, NORMAL)]
FAIRSEQ = {"sentencepiece.bpe.model": model(PIECES)}
PEGASUS = {"spiece.model": model([("<pad>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), ("<unk>", 0.0, UNKNOWN), *PIECES[3:]])}
# Without the piece "ab", with "ß" that no piece covers, in an order of its own.
MARIAN = {t: i for i, t in enumerate(["</s>", "<unk>", "a", "▁ab", "ß", "▁", "b", "▁ß", "▁the", ">>fra<<", "f", "r", "<pad>"])}
M2M = {t: i for i, t in enumerate(["<s>", "<pad>", "</s>", "<unk>", "b", "a", "▁ab", "▁", "▁the", "de"])}
MARIAN_FILES = {"source.spm": model(PIECES), "target.spm": model([*PIECES[:4], ("ß", -1.0, NORMAL)]), "vocab.json": MARIAN}
M2M_FILES = {**FAIRSEQ, "vocab.json": M2M}
FILES = {
    "XLMRobertaTokenizer": FAIRSEQ,
    "CamembertTokenizer": FAIRSEQ,
    "MBartTokenizer": FAIRSEQ,
    "MBart50Tokenizer": FAIRSEQ,
    "PegasusTokenizer": PEGASUS,
    "MarianTokenizer": MARIAN_FILES,
    "M2M100Tokenizer": M2M_FILES,
}
TEXTS = ["ab the  aab", "é ab</s>b", "<unk>a<pad>", ">>fra<< the ab", "a >>fra<<", "ßa ab ß", "a <mask> b", ""]


def write(folder, files, **jsons):
    for name, content in {**files, **{f"{name}.json": value for name, value in jsons.items()}}.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


# By transformers 5.24: of each text, and of the first two as a pair.
IDS = {
    "XLMRobertaTokenizer": [
        [0, 8, 9, 4, 5, 7, 2],
        [0, 4, 3, 8, 2, 4, 6, 2],
        [0, 3, 4, 5, 1, 2],
        [0, 4, 3, 11, 12, 5, 3, 9, 8, 2],
        [0, 4, 5, 4, 3, 11, 12, 5, 3, 2],
        [0, 4, 3, 5, 8, 4, 3, 2],
        [0, 4, 5, 13, 4, 6, 2],
        [0, 2],
        [0, 8, 9, 4, 5, 7, 2, 2, 4, 3, 8, 2, 4, 6, 2],
    ],
    "CamembertTokenizer": [
        [5, 11, 12, 7, 8, 10, 6],
        [5, 7, 3, 11, 6, 7, 9, 6],
        [5, 3, 7, 8, 1, 6],
        [5, 7, 3, 14, 15, 8, 3, 12, 11, 6],
        [5, 7, 8, 7, 3, 14, 15, 8, 3, 6],
        [5, 7, 3, 8, 11, 7, 3, 6],
        [5, 7, 8, 16, 7, 9, 6],
        [5, 6],
        [5, 11, 12, 7, 8, 10, 6, 6, 7, 3, 11, 6, 7, 9, 6],
    ],
    "MBartTokenizer": [
        [8, 9, 4, 5, 7, 2, 16],
        [4, 3, 8, 2, 4, 6, 2, 16],
        [3, 4, 5, 1, 2, 16],
        [4, 3, 11, 12, 5, 3, 9, 8, 2, 16],
        [4, 5, 4, 3, 11, 12, 5, 3, 2, 16],
        [4, 3, 5, 8, 4, 3, 2, 16],
        [4, 5, 38, 4, 6, 2, 16],
        [2, 16],
        [8, 9, 4, 5, 7, 4, 3, 8, 2, 4, 6, 2, 16],
    ],
    "MBart50Tokenizer": [
        [16, 8, 9, 4, 5, 7, 2],
        [16, 4, 3, 8, 2, 4, 6, 2],
        [16, 3, 4, 5, 1, 2],
        [16, 4, 3, 11, 12, 5, 3, 9, 8, 2],
        [16, 4, 5, 4, 3, 11, 12, 5, 3, 2],
        [16, 4, 3, 5, 8, 4, 3, 2],
        [16, 4, 5, 65, 4, 6, 2],
        [16, 2],
        [16, 8, 9, 4, 5, 7, 4, 3, 8, 2, 4, 6, 2],
    ],
    "PegasusTokenizer": [
        [110, 111, 106, 107, 109, 1],
        [106, 105, 110, 1, 106, 108, 1],
        [105, 106, 107, 0, 1],
        [106, 105, 113, 114, 107, 105, 111, 110, 1],
        [106, 107, 106, 105, 113, 114, 107, 105, 1],
        [106, 105, 107, 110, 106, 105, 1],
        [106, 107, 106, 105, 107, 105, 106, 108, 1],
        [1],
        [110, 111, 106, 107, 109, 106, 105, 110, 1, 106, 108, 1],
    ],
    "MarianTokenizer": [
        [3, 8, 5, 2, 1, 0],
        [5, 1, 3, 0, 5, 6, 0],
        [1, 5, 2, 12, 0],
        [9, 8, 3, 0],
        [5, 2, 5, 1, 10, 11, 2, 1, 0],
        [5, 4, 2, 3, 5, 4, 0],
        [5, 2, 5, 1, 2, 1, 5, 6, 0],
        [0],
        [3, 8, 5, 2, 1, 5, 1, 3, 0, 5, 6, 0],
    ],
    "M2M100Tokenizer": [
        [28, 6, 8, 7, 5, 3, 2],
        [28, 7, 3, 6, 2, 7, 4, 2],
        [28, 3, 7, 5, 1, 2],
        [28, 7, 3, 3, 3, 5, 3, 8, 6, 2],
        [28, 7, 5, 7, 3, 3, 3, 5, 3, 2],
        [28, 7, 3, 5, 6, 7, 3, 2],
        [28, 7, 5, 7, 3, 5, 3, 7, 4, 2],
        [28, 2],
        [28, 6, 8, 7, 5, 3, 7, 3, 6, 2, 7, 4, 2],
    ],
}


@pytest.mark.parametrize("name", FILES)
def test_ids_are_those_of_the_class(tmp_path, name):
    tokenizer = Tokenizer.from_pretrained(write(tmp_path, FILES[name], tokenizer_config={"tokenizer_class": name}))
    assert [tokenizer.encode(text).ids for text in TEXTS] + [tokenizer.encode(*TEXTS[:2]).ids] == IDS[name]
    assert [encoding.ids for encoding in tokenizer.encode_batch(TEXTS)] == IDS[name][:-1]
    detailed = tokenizer.encode("the ab")
    assert [(tokenizer.id_to_token(i), span) for i, span in zip(detailed.ids, detailed.offsets, strict=True) if span != (0, 0)] == [
        ("▁the", (0, 3)),
        ("▁ab", (3, 6)),
    ]


@pytest.mark.parametrize("name", FILES)
def test_texts_come_back(tmp_path, name):
    tokenizer = Tokenizer.from_pretrained(write(tmp_path, FILES[name], tokenizer_config={"tokenizer_class": name}))
    ids = tokenizer.encode("a the b ab").ids
    assert tokenizer.decode(ids) == "a the b ab"
    stream = tokenizer.stream_decoder()
    assert "".join(map(stream.push, ids)) + stream.flush() == "a the b ab"
    assert "</s>" in tokenizer.decode(ids, skip_special_tokens=False)
    assert tokenizer.id_to_token(tokenizer.eos_id) == "</s>"
    assert tokenizer.id_to_token(tokenizer.pad_id) == "<pad>"


@pytest.mark.parametrize(
    "kind, name",
    [
        ("xlm-roberta", "XLMRobertaTokenizer"),
        ("xlm-roberta-xl", "XLMRobertaTokenizer"),
        ("camembert", "CamembertTokenizer"),
        ("mbart", "MBartTokenizer"),
        ("pegasus", "PegasusTokenizer"),
        ("marian", "MarianTokenizer"),
        ("m2m_100", "M2M100Tokenizer"),
    ],
)
def test_the_kind_of_model_tells_where_no_class_is_named(tmp_path, kind, name):
    tokenizer = Tokenizer.from_file(write(tmp_path, FILES[name], config={"model_type": kind}, tokenizer_config={"tokenizer_class": None}))
    assert tokenizer.encode(TEXTS[0]).ids == IDS[name][0]
    assert tokenizer.settings["tokenizer_class"] == name


def test_a_named_class_goes_before_the_kind_of_model(tmp_path):
    folder = write(tmp_path, FAIRSEQ, config={"model_type": "mbart", "tokenizer_class": "MBart50TokenizerFast"})
    assert Tokenizer.from_pretrained(folder).encode(TEXTS[0]).ids == IDS["MBart50Tokenizer"][0]
    write(folder, {}, tokenizer_config={"tokenizer_class": "T5Tokenizer"})
    assert Tokenizer.from_pretrained(folder).encode("ab").ids == [7]


def test_marks_are_text_where_special_tokens_are_not_parsed(tmp_path):
    tokenizer = Tokenizer.from_pretrained(write(tmp_path, M2M_FILES, config={"model_type": "m2m_100"}))
    assert tokenizer.encode("__de__ a", add_special_tokens=False).tokens == ["__de__", "▁", "a"]
    assert tokenizer.encode("__de__ a", add_special_tokens=False, parse_special=False).ids == [7, 3, 9, 3, 7, 5]


def test_the_source_language_is_the_folders(tmp_path):
    folder = write(tmp_path, M2M_FILES, tokenizer_config={"tokenizer_class": "M2M100Tokenizer", "src_lang": "af"})
    assert Tokenizer.from_pretrained(folder).encode("a").tokens == ["__af__", "▁", "a", "</s>"]
    write(folder, {}, tokenizer_config={"tokenizer_class": "MBartTokenizer", "src_lang": "zh_CN"})
    assert Tokenizer.from_pretrained(folder).encode("a").tokens == ["▁", "a", "</s>", "zh_CN"]
    for name, known in [("M2M100Tokenizer", "af, am"), ("MBart50Tokenizer", "ar_AR, cs_CZ")]:
        write(folder, {}, tokenizer_config={"tokenizer_class": name, "src_lang": "xx"})
        with pytest.raises(TokenizerError, match=f"src_lang is 'xx'; known are {known}"):
            Tokenizer.from_pretrained(folder)


def test_declared_language_marks_take_the_place_of_the_list(tmp_path):
    folder = write(tmp_path, M2M_FILES, config={"model_type": "m2m_100"}, added_tokens={"__xx__": 10, "__en__": 11})
    tokenizer = Tokenizer.from_pretrained(folder)
    assert tokenizer.encode("__xx__a").ids == [11, 10, 7, 5, 2]
    assert tokenizer.vocab_size == 12
    assert tokenizer.decode([11, 7, 5, 2]) == "a"


def test_pegasus_without_offset_keeps_the_files_ids(tmp_path):
    config = {"tokenizer_class": "PegasusTokenizer", "offset": 0}
    assert Tokenizer.from_pretrained(write(tmp_path, PEGASUS, tokenizer_config=config)).encode("ab").ids == [7, 1]


def test_further_tokens_with_ids_are_found(tmp_path):
    entry = {"content": "<sep>", "special": True}
    config = {"tokenizer_class": "XLMRobertaTokenizer", "added_tokens_decoder": {"14": entry}, "additional_special_tokens": ["<sep>"]}
    tokenizer = Tokenizer.from_pretrained(write(tmp_path, FAIRSEQ, tokenizer_config=config))
    assert tokenizer.encode("a<sep>", add_special_tokens=False).ids == [4, 5, 14]
    assert tokenizer.decode([4, 5, 14]) == "a"


@pytest.mark.parametrize(
    "files, config, message",
    [
        (FAIRSEQ, {"tokenizer_class": "NllbTokenizerFast"}, "NllbTokenizer .* save tokenizer.json"),
        (FAIRSEQ, {"tokenizer_class": "XGLMTokenizer"}, "XGLMTokenizer .* save tokenizer.json"),
        (
            {"spm.model": FAIRSEQ["sentencepiece.bpe.model"]},
            {"tokenizer_class": "CamembertTokenizer"},
            "CamembertTokenizer needs sentencepiece.bpe.model",
        ),
        ({"vocab.json": MARIAN}, {"tokenizer_class": "MarianTokenizer"}, "MarianTokenizer needs source.spm"),
        (FAIRSEQ, {"tokenizer_class": "M2M100Tokenizer"}, "vocab.json is missing, or has no </s>"),
        ({**MARIAN_FILES, "vocab.json": {"</s>": 0}}, {"tokenizer_class": "MarianTokenizer"}, "has no <unk>"),
        ({k: v for k, v in MARIAN_FILES.items() if k != "target.spm"}, {"tokenizer_class": "MarianTokenizer"}, "target.spm is missing"),
        (MARIAN_FILES, {"tokenizer_class": "MarianTokenizer", "separate_vocabs": True}, "separate_vocabs is true"),
        (M2M_FILES, {"tokenizer_class": "M2M100Tokenizer", "language_codes": "own"}, "language_codes is 'own'"),
        (PEGASUS, {"tokenizer_class": "PegasusTokenizer", "offset": 1}, "offset is 1"),
        ({"sentencepiece.bpe.model": model(PIECES[:2] + PIECES[3:])}, {"tokenizer_class": "XLMRobertaTokenizer"}, "first 3 pieces are not all marks"),
        (FAIRSEQ, {"tokenizer_class": "XLMRobertaTokenizer", "added_tokens_decoder": {"7": {"content": "<x>"}}}, "'<x>' is declared with id 7"),
        (FAIRSEQ, {"tokenizer_class": "XLMRobertaTokenizer", "added_tokens_decoder": {"2": {"content": "<s>"}}}, "'<s>' is declared with id 2"),
        (FAIRSEQ, {"tokenizer_class": "XLMRobertaTokenizer", "added_tokens_decoder": {"x": {"content": "<s>"}}}, "is no id"),
        (M2M_FILES, {"tokenizer_class": "M2M100Tokenizer", "added_tokens_decoder": {"3": {"content": "__en__"}}}, "declared with the id of another"),
        (FAIRSEQ, {"tokenizer_class": "XLMRobertaTokenizer", "extra_special_tokens": "<x>"}, "extra_special_tokens must be list or dict"),
        (FAIRSEQ, {"tokenizer_class": "XLMRobertaTokenizer", "eos_token": "<end>"}, "'<end>' has no id"),
        (FAIRSEQ, {"tokenizer_class": "XLMRobertaTokenizer", "additional_special_tokens": ["<more>"]}, "'<more>' has no id"),
    ],
)
def test_no_ids_rather_than_wrong_ones(tmp_path, files, config, message):
    with pytest.raises(TokenizerError, match=message):
        Tokenizer.from_pretrained(write(tmp_path, files, tokenizer_config=config))
