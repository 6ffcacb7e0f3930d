"""tokenizer.json: unknown, damaged and hostile documents raise TokenizerError that names the place, quickly."""

import copy
import json
import random
import time

import pytest
from tokenizer_documents import byte_level_document, word_document

from cygnet import Tokenizer
from cygnet.errors import TokenizerError

NESTED = {"type": "WhitespaceSplit"}
for _ in range(200):
    NESTED = {"type": "Sequence", "pretokenizers": [NESTED]}


def changed(path, value):
    document = byte_level_document([("a", "b")], added=["<s>"])
    inner = document
    *before, last = path
    for key in before:
        inner = inner[key]
    inner[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "names"),
    [
        (["pre_tokenizer"], {"type": "Nonsense"}, "pre_tokenizer.*Nonsense"),
        (["pre_tokenizer"], {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}, "pattern.Regex"),
        (["pre_tokenizer"], {"type": "Split", "pattern": {"String": "a"}, "behavior": "Sideways"}, "behavior.*Sideways"),
        (["pre_tokenizer"], {"type": "Metaspace", "replacement": "ab"}, "replacement"),
        (["pre_tokenizer"], {"type": "FixedLength", "length": 0}, "length"),
        (["pre_tokenizer"], NESTED, "nested too deep"),
        (["pre_tokenizer"], [], "pre_tokenizer"),
        (["normalizer"], {"type": "Nonsense"}, "normalizer.*Nonsense"),
        (["decoder"], {"type": "Nonsense"}, "decoder.*Nonsense"),
        (["decoder"], {"type": "Strip", "content": " "}, "decoder.start"),
        (["post_processor"], {"type": "Nonsense"}, "post_processor.*Nonsense"),
        (["post_processor"], {"type": "BertProcessing", "cls": ["a"], "sep": ["b", 1]}, "post_processor.cls"),
        (
            ["post_processor"],
            {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}}], "pair": [], "special_tokens": {}},
            "single.*'x'",
        ),
        (["truncation"], {"max_length": -1, "strategy": "LongestFirst", "stride": 0}, "truncation.max_length"),
        (["padding"], {"strategy": "Sometimes"}, "padding.strategy"),
        (["model", "type"], "Nonsense", "model.*Nonsense"),
        (["model", "vocab"], {"a": 1, "b": 1}, "model.vocab.*'a' and 'b'"),
        (["model", "vocab"], {"a": -1}, "model.vocab.*'a'"),
        (["model", "vocab"], {"a": 2**40}, "model.vocab.*'a'"),
        (["model", "vocab"], {"a": 1.5}, "model.vocab.*'a'"),
        (["model", "vocab"], {"a": True}, "model.vocab.*'a'"),
        (["model", "vocab"], ["a"], "model.vocab"),
        (["model", "merges"], [["a", "b"], ["a", "zz"]], r"model.merges\[1\].*zz"),
        (["model", "merges"], ["a b", "abc"], r"model.merges\[1\]"),
        (["model", "merges"], 5, "model.merges"),
        (["model", "dropout"], 0.1, "model.dropout"),
        (["model", "ignore_merges"], "yes", "model.ignore_merges"),
        (["added_tokens"], {"a": 1}, "added_tokens"),
        (["added_tokens", 0, "content"], 5, r"added_tokens\[0\].content"),
        (["added_tokens", 0, "id"], -5, r"added_tokens\[0\].id"),
    ],
)
def test_damage_is_named(path, value, names):
    document = changed(path, value)
    start = time.process_time()
    for give in (document, json.dumps(document)):
        with pytest.raises(TokenizerError, match=names):
            Tokenizer.from_json(give)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "1",
        '"x"',
        "{}",
        '{"model": null}',
        '{"model": []}',
        "[" * 100_000,
        '{"a":' * 100_000,
        b"\xff\xfe",
        b'{"model": "\xff"}',
        '{"model": {"merges": [',
    ],
)
def test_no_tokenizer_at_all(text):
    with pytest.raises(TokenizerError, match=r"tokenizer\.json"):
        Tokenizer.from_json(text)


def test_dropout_of_zero_is_none():
    assert Tokenizer.from_json(changed(["model", "dropout"], 0.0)).encode("ab").tokens == ["ab"]


@pytest.mark.parametrize("dump", [json.dumps, lambda d: json.dumps(d, ensure_ascii=False, indent=2)])
@pytest.mark.parametrize("join", [list, " ".join])
def test_merges_read_from_the_text(dump, join):
    merges = [("a", "b"), ("é", "ab"), ('"', "\\"), ("😀", "\n"), ("\x7f", "/")]
    tokens = dict.fromkeys([*(t for pair in merges for t in pair), *("".join(pair) for pair in merges)])
    document = {"model": {"merges": [join(pair) for pair in merges], "vocab": {t: i for i, t in enumerate(tokens)}, "type": "BPE"}}
    for model in (Tokenizer.from_json(dump(document)).model, Tokenizer.from_json(copy.deepcopy(document)).model):
        assert [tuple(map(model.id_to_token, model.merges[i])) for i in range(len(merges))] == [(a, b, a + b) for a, b in merges]


def test_older_models_are_told_by_their_fields():
    document = word_document(["?", "a"])
    del document["model"]["type"]
    assert Tokenizer.from_json(document).encode("a b").ids == [1, 0]


@pytest.mark.parametrize("seed", range(60))
def test_mutations_raise_only_our_error(seed):
    rng = random.Random(seed)
    data = bytearray(json.dumps(byte_level_document([("a", "b"), ("ab", "c")], added=["<s>"])).encode())
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data))
        data[at : at + rng.randrange(4)] = bytes(rng.choice(b'"\\{}[],:0a\xff\x00 ') for _ in range(rng.randrange(3)))
    try:
        tokenizer = Tokenizer.from_json(bytes(data))
        tokenizer.decode(tokenizer.encode("abc <s> é").ids)
    except TokenizerError:
        pass
