"""Structured output: what cannot be enforced is refused, what ends is valid, white space is bounded."""

import codecs
import json
import re
import sys

import numpy as np
import pytest

from cygnet._core._processors import apply_bitmask
from cygnet.errors import DecodingError, MissingDependency, OptionError
from cygnet.generation.constraints import Vocabulary
from cygnet.generation.options import GenerationOptions
from cygnet.generation.scheduler import Scheduler
from cygnet.generation.tasks import Request

from .fakes import HashEngine

TOKENS = [bytes([i]) for i in range(256)] + [b'{"', b'":', b"  ", b"\n\n", b"true", b"\xe2\x82", b"<end>", b""]
END = 262


def test_bitmask():
    for size in (1, 31, 32, 33, 70):
        for words in (1, 2, 3):
            bits = np.random.default_rng(size).integers(0, 2**32, words, np.uint32)
            row = np.ones(size, np.float32)
            apply_bitmask(row, bits)
            allowed = [i // 32 < words and bool(bits[i // 32] >> np.uint32(i % 32) & np.uint32(1)) for i in range(size)]
            assert np.isfinite(row).tolist() == allowed


def test_without_llguidance_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(MissingDependency, match=r"cygnet\[structured\]"):
        Vocabulary(TOKENS, [END])


@pytest.fixture(scope="module")
def vocabulary():
    pytest.importorskip("llguidance")
    return Vocabulary(TOKENS, [END])


@pytest.fixture(scope="module")
def scheduler():
    scheduler = Scheduler(HashEngine(vocab_size=270, scale=1.0))
    yield scheduler
    scheduler.close()
    scheduler.engine.assert_clean()


class Utf8:
    """A TextDecoder of byte tokens."""

    def __init__(self):
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def push(self, token_id):
        return self.decoder.decode(TOKENS[token_id])

    def flush(self):
        return self.decoder.decode(b"", True)


def answer(scheduler, constraint, **options):
    options = {"max_new_tokens": 200, "eos_token_id": END, "constraint": constraint, **options}
    return scheduler.submit(Request([65], GenerationOptions.create(None, **options), Utf8)).result()[0]


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b", None, 3]}, "maxItems": 3},
        "more": {"$ref": "#/$defs/point"},
    },
    "required": ["name", "age", "more"],
    "additionalProperties": False,
    "$defs": {"point": {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"], "additionalProperties": False}},
}


def test_finished_answers_are_valid(vocabulary, scheduler):
    jsonschema = pytest.importorskip("jsonschema")
    constraint = vocabulary.json_schema(PERSON)
    finished = 0
    for seed in range(12):
        found = answer(scheduler, constraint, temperature=1.0, seed=seed)
        if found.finish_reason == "stop":
            jsonschema.validate(json.loads(found.text), PERSON)
            finished += 1
        else:
            assert found.finish_reason == "length" and len(found.ids) == 200
    assert finished >= 6
    cut = answer(scheduler, constraint, max_new_tokens=3)
    assert cut.finish_reason == "length"


def test_white_space_is_bounded(vocabulary, scheduler):
    loves_breaks = {ord("\n"): 20, 259: 20, ord(" "): 20, 258: 20, ord("\t"): 20}
    for schema in (
        PERSON,
        {"type": "object", "properties": {"a": {"type": "integer", "maximum": 9}}, "required": ["a"], "additionalProperties": False},
    ):
        found = answer(scheduler, vocabulary.json_schema(schema), logit_bias=loves_breaks, max_new_tokens=400)
        assert not re.search(r"\s{23}|\n[ \t]*\n", found.text)
        assert found.finish_reason == "stop" and isinstance(json.loads(found.text), dict)


def test_a_bias_against_the_grammar_loses(vocabulary, scheduler):
    found = answer(scheduler, vocabulary.regex("[0-9]{3}"), logit_bias={ord("x"): 100, END: 100})
    assert re.fullmatch("[0-9]{3}", found.text) and found.finish_reason == "stop"


def test_open_ended_patterns_end_with_an_end_token(vocabulary, scheduler):
    found = answer(scheduler, vocabulary.regex("[ab]+"), logit_bias={END: 100})
    assert re.fullmatch("[ab]+", found.text) and found.ids[-1] == END and found.finish_reason == "stop"
    found = answer(scheduler, vocabulary.regex("[ab]+"), logit_bias={END: -100}, max_new_tokens=9)
    assert re.fullmatch("[ab]{9}", found.text) and found.finish_reason == "length"


def test_grammars_samples_and_speculation(vocabulary, scheduler):
    constraint = vocabulary.grammar('start: item ("," item)*\nitem: /[a-c]/ | "(" start ")"')
    options = {"temperature": 1.0, "seed": 3, "n": 3, "max_new_tokens": 30}
    request = GenerationOptions.create(None, eos_token_id=END, constraint=constraint, **options)
    plain = scheduler.submit(Request([65], request, Utf8)).result()
    assert all(set(g.text) <= set("abc,()") for g in plain) and len({g.text for g in plain}) > 1
    request = GenerationOptions.create(None, eos_token_id=END, constraint=constraint, speculation="prompt-lookup", **options)
    assert scheduler.submit(Request([65], request, Utf8)).result() == plain


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "object", "unknownKeyword": 3}, "unknownKeyword"),
        ({"type": "object", "properties": {"a": {"type": "string", "patern": "x"}}}, "#/properties/a"),
        ({"anyOf": [{"type": "string"}, {"x-guidance": {}}]}, "#/anyOf/1"),
        ({"type": "string", "pattern": "(?<=a)b"}, "look-around"),
        ({"type": "string", "pattern": "("}, "unclosed"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"not": {"type": "string"}}, "not"),
        ({"type": "strng"}, "strng"),
        ({"$ref": "#/$defs/missing"}, "missing"),
        ({"type": "integer", "minimum": 5, "maximum": 3}, "minimum"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
        ({"if": {}, "then": {}}, "if"),
        ("{not json", "not JSON"),
        ([1], "object"),
        (False, "object"),
    ],
)
def test_what_cannot_be_enforced_is_refused(vocabulary, schema, named):
    with pytest.raises(OptionError, match=re.escape(named)):
        vocabulary.json_schema(schema)


def test_bad_patterns_grammars_and_constraints(vocabulary):
    for make, text in ((vocabulary.regex, "("), (vocabulary.grammar, "start: nope"), (vocabulary.grammar, "")):
        with pytest.raises(OptionError, match="cannot be enforced"):
            make(text)
    with pytest.raises(OptionError, match="constraint"):
        GenerationOptions(constraint={"type": "object"})
    with pytest.raises(OptionError, match="end token"):
        Vocabulary(TOKENS, [])


def test_options_are_compiled_once_by_the_scheduler(vocabulary):
    made = []

    def make():
        made.append(1)
        return vocabulary

    scheduler = Scheduler(HashEngine(vocab_size=270), vocabulary=make)
    for options in ({"regex": "[0-9]{2}"}, {"json_schema": {"type": "boolean"}}, {"grammar": 'start: "yes" | "no"'}):
        options = GenerationOptions.create(None, eos_token_id=END, max_new_tokens=20, **options)
        [found] = scheduler.submit(Request([65], options, Utf8)).result()
        assert re.fullmatch("[0-9]{2}|true|false|yes|no", found.text)
    assert made == [1]
    with pytest.raises(OptionError, match="cannot be enforced"):
        scheduler.submit(Request([65], GenerationOptions(regex="(")))
    scheduler.close()
    assert vocabulary.regex("a+") is vocabulary.regex("a+")


def test_structure_options_need_a_vocabulary_and_exclude_each_other():
    scheduler = Scheduler(HashEngine())
    with pytest.raises(OptionError, match="tokenizer"):
        scheduler.submit(Request([1], GenerationOptions(regex="a")))
    scheduler.close()
    for options in ({"regex": "a", "grammar": "b"}, {"json_schema": 3}, {"regex": b"a"}, {"json_schema": {}, "num_beams": 2}):
        with pytest.raises(OptionError):
            GenerationOptions(**options)


def test_any_json(vocabulary, scheduler):
    for schema in (True, {}, '{"type": ["null", "boolean"]}'):
        assert vocabulary.json_schema(schema).start().finished is False
    assert answer(scheduler, vocabulary.json_schema('{"type": ["null", "boolean"]}')).text in ("null", "true", "false")


def test_a_grammar_that_leaves_nothing_is_an_error(vocabulary, scheduler):
    # The only byte it allows is not in this model's reach: the bias bars it.
    with pytest.raises(DecodingError):
        answer(scheduler, vocabulary.regex("a"), logit_bias={ord("a"): float("-inf")})
