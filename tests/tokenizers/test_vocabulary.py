"""Vocabularies read from JSON text against dicts that json made of it, and the large parts cut out of a tokenizer.json."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cygnet._core._vocabulary import Pieces, Vocabulary, cut_large_parts, read_ids
from cygnet.errors import TokenizerError
from cygnet.tokenizers import Tokenizer

TOKENS = st.text(max_size=6)
IDS = st.one_of(st.integers(0, 50), st.integers(0, 2**31 - 1))
VOCABS = st.dictionaries(TOKENS, IDS, max_size=40).map(lambda vocab: {token: i for i, token in {i: t for t, i in vocab.items()}.items()})


@given(VOCABS, st.booleans(), st.sampled_from([None, 1]))
def test_a_vocabulary_holds_what_the_text_says(vocab, ascii_only, indent):
    text = json.dumps(vocab, ensure_ascii=ascii_only, indent=indent).encode()
    assert read_ids(text) == vocab
    for read in (Vocabulary.from_json(text), Vocabulary(vocab)):
        assert len(read) == len(vocab)
        for token, token_id in vocab.items():
            assert read.id_of(token) == token_id and read.spelling(token_id) == token
        assert read.id_of("not there") is None
        assert all(read.spelling(i) is None for i in (-1, 51, 2**31, 2**70) if i not in vocab.values())


@given(st.lists(st.tuples(TOKENS, st.floats(-1e6, 1e6)), min_size=1, max_size=40))
def test_pieces_hold_what_the_text_says(rows):
    read, listed = Pieces.from_json(json.dumps(rows).encode()), Pieces(rows)
    for pieces in (read, listed):
        assert len(pieces) == len(rows)
        assert [pieces.spelling(i) for i in range(len(rows))] == [piece for piece, _ in rows]
        last = {piece: i for i, (piece, _) in enumerate(rows)}
        assert all(pieces.id_of(piece) == i for piece, i in last.items())
    assert read.scores.tolist() == pytest.approx(listed.scores.tolist(), rel=1e-15, abs=1e-300)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 0, "a": 1}',
        '{"a": 0, "b": 0}',
        '{"a": -1}',
        '{"a": 2147483648}',
        '{"a": 1.0}',
        '{"a": 01}',
        '{"a": true}',
        '{"a": 0,}',
        '{"a": 0} 1',
        '{"a": 0',
        '{"\\ud800": 0}',
        '{"\n": 0}',
        '["a"]',
        b'{"\xff": 0}',
        b'{"\xed\xa0\x80": 0}',
        b'{"\xc0\x80": 0}',
        b'{"\xf4\x90\x80\x80": 0}',
        b'{"\xc3": 0, "\xa9": 1}',
    ],
)
def test_odd_text_is_left_to_the_careful_way(text):
    text = text if isinstance(text, bytes) else text.encode()
    assert read_ids(text) is None and Vocabulary.from_json(text) is None


@pytest.mark.parametrize("row", ['["a"]', '["a", 1, 2]', '["a", "1"]', '["a", NaN]', '["a", 1e999]', '["a", -]', '["a", 1.]', '["a", .5]', "1"])
def test_odd_pieces_are_left_to_the_careful_way(row):
    assert Pieces.from_json(b'[["x", -1.5], ["y", -2e-3]]').scores.tolist() == [-1.5, -2 / 1000]
    assert Pieces.from_json(f'[["x", -1.5], {row}]'.encode()) is None


def test_bytes_that_are_no_utf8_are_spelled_with_lone_surrogates():
    read = Vocabulary({"\udcff": 0, "a": 7})
    assert read.id_of("\udcff") == 0 and read.spelling(0) == "\udcff" and read.id_of("\ud800") is None


@pytest.mark.parametrize(
    ("text", "rest", "parts"),
    [
        ('{"model": {"vocab": {"a": 0}, "merges": []}}', '{"model": {"vocab": true, "merges": true}}', {"vocab": '{"a": 0}', "merges": "[]"}),
        ('{"x": {"vocab": [1]}, "model": {"merges": ["]"]}}', '{"x": {"vocab": [1]}, "model": {"merges": true}}', {"merges": '["]"]'}),
        ('{"model": {"vocab": 5}}', '{"model": {"vocab": 5}}', {}),
        ('{"model": {"vocab": {"a": 0}', '{"model": {"vocab": true', {"vocab": '{"a": 0}'}),
        ("nothing", "nothing", {}),
    ],
)
def test_large_parts_are_cut_out(text, rest, parts):
    assert cut_large_parts(text.encode()) == (rest.encode(), {name: part.encode() for name, part in parts.items()})


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ('"type": "WordPiece", "vocab": {"a": 0, "b": 0}', "id 0 is given to both"),
        ('"type": "WordPiece", "vocab": {"a": 0,}', "model.vocab is no valid JSON"),
        ('"type": "WordPiece", "vocab": ["a"]', "model.vocab must be an object, not list"),
        ('"type": "WordLevel", "vocab": {"a": 1.5}', "must be a whole number"),
        ('"type": "Unigram", "vocab": {"a": 0}', "model.vocab must be a list, not dict"),
        ('"type": "Unigram", "vocab": []', "model.vocab is empty"),
        ('"type": "Unigram", "vocab": [["a", -1.0], ["b"]]', r"model.vocab\[1\] must be a piece and its score"),
    ],
)
def test_errors_name_the_place(model, message):
    with pytest.raises(TokenizerError, match=message):
        Tokenizer.from_json(f'{{"model": {{{model}}}}}')


def test_the_last_of_two_models_counts():
    document = '{"model": {"type": "WordLevel", "vocab": {"a": 0}}, "model": {"type": "WordLevel", "vocab": {"b": 0}}}'
    assert Tokenizer.from_json(document).id_to_token(0) == "b"
    for last in ('{"type": "WordLevel"}', "5"):
        with pytest.raises(TokenizerError):
            Tokenizer.from_json(f'{{"model": {{"type": "WordLevel", "vocab": {{"a": 0}}}}, "model": {last}}}')
