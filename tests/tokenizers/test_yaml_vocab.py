"""Marian's .yml vocabularies: what is written by hand here, what a YAML library writes, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cygnet.errors import TokenizerError
from cygnet.tokenizers.yaml_vocab import read_yaml_vocab


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    path = tmp_path_factory.mktemp("yaml") / "opus.spm32k-vocab.yml"

    def reading(text):
        path.write_bytes(text.encode())
        return read_yaml_vocab(path)

    return reading


@pytest.mark.parametrize("text", ["</s>: 0\n'<unk>': 1\n", "---\n</s>: 0\n'<unk>': 1\n", '{"</s>": 0, "<unk>": 1}'])
def test_the_mark_in_front_of_utf_8_is_no_part_of_a_token(read, text):
    assert read("\ufeff" + text) == read(text) == {"</s>": 0, "<unk>": 1}


@pytest.mark.parametrize(
    ("line", "token"),
    [
        ('"</s>": 7', "</s>"),
        ("</s>: 7", "</s>"),
        ("▁the: 7", "▁the"),
        (r'"\"": 7', '"'),
        (r'"a\\b\/": 7', "a\\b/"),
        (r'"\x85\u2581\U0001F600\t": 7', "\x85▁😀\t"),
        ("'it''s': 7", "it's"),
        ("'\\n': 7", "\\n"),
        ('":": 7', ":"),
        ('": 3": 7', ": 3"),
        ("a:b: 7", "a:b"),
        ("http:: 7", "http:"),
        ("-: 7", None),
        ("-x: 7", "-x"),
        ("a#b: 7", "a#b"),
        ("12: 7", "12"),
        ("don't: 7", "don't"),
        ('"a"  :   7  ', "a"),
        ('"\u2028": 7', "\u2028"),
    ],
)
def test_a_line_is_a_token_and_its_id(read, line, token):
    if token is None:
        with pytest.raises(TokenizerError, match="line 1"):
            read(line)
    else:
        assert read(f"---\n{line}\r\n\n") == {token: 7}


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a 7",
        "a:7",
        "a: b",
        "a: -1",
        "a: 1.5",
        "a: 99999999999",
        "a: 7 # comment",
        "# comment",
        "a: {b: 7}",
        "a:\n  b: 7",
        "- a: 7",
        "? a\n: 7",
        "&b: 7",
        "*b: 7",
        "!b: 7",
        "[b]: 7",
        "a #b: 7",
        "a: b: 7",
        '"a: 7',
        '"a"b: 7',
        "'a'b: 7",
        r'"\z": 7',
        r'"\ud83d\ude00": 7',
        r'"\U00110000": 7',
        r'"\x4": 7',
        "a: 7\nb: 7",
        '{"a": 0,}',
    ],
)
def test_what_is_no_vocabulary_is_refused(read, text):
    with pytest.raises(TokenizerError, match="vocab.yml"):
        read(text)


def test_of_equal_tokens_the_first_counts(read):
    assert read("a: 0\nb: 1\na: 2") == {"a": 0, "b": 1}


def test_json_is_yaml(read):
    vocab = {"</s>": 0, '"': 1, "😀": 2}
    assert read(json.dumps(vocab)) == read("\n" + json.dumps(vocab, indent=1)) == vocab


TOKENS = st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=30)


@given(TOKENS, st.sampled_from([None, '"', "'"]), st.booleans())
def test_reads_what_a_yaml_library_writes(read, tokens, style, allow_unicode):
    yaml = pytest.importorskip("yaml")

    def key(token):
        written = [yaml.dump(token, default_style=s, allow_unicode=allow_unicode, width=10**6).removesuffix("...\n")[:-1] for s in (style, '"')]
        return next(text for text in written if len(text.splitlines()) == 1)

    text = "".join(f"{key(token)}: {i}\n" for i, token in enumerate(tokens))
    assert yaml.load(text, yaml.BaseLoader) == ({token: str(i) for i, token in enumerate(tokens)} or None)
    assert read(text) == {token: i for i, token in enumerate(tokens)}
