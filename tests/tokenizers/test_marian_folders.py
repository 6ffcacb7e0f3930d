"""Marian folders: language marks in front of a text, and texts in the language of the answer, cut by a file of their own."""

import io
import json
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece_files import LETTERS, NORMAL, model

from cygnet import Tokenizer
from cygnet.errors import TokenizerError

VOCAB = {t: i for i, t in enumerate(["</s>", "<unk>", "a", "▁ab", "ß", "▁", "b", "▁a", ">>fra<<", ">>x y<<", "ba", "<pad>"])}
SOURCE = model([*LETTERS, ("ba", -1.0, NORMAL)])
TARGET = model([*LETTERS[:6], ("▁a", -1.0, NORMAL), ("ba", -1.0, NORMAL), ("ß", -1.0, NORMAL)])


def write(folder, source=SOURCE, target=TARGET, vocab=VOCAB):
    (folder / "source.spm").write_bytes(source)
    (folder / "target.spm").write_bytes(target)
    (folder / "vocab.json").write_text(json.dumps(vocab))
    (folder / "config.json").write_text(json.dumps({"model_type": "marian"}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
    return folder


@pytest.fixture
def marian(tmp_path):
    return Tokenizer.from_pretrained(write(tmp_path))


@pytest.mark.parametrize(
    "text, tokens",
    [
        (">>fra<< ab", [">>fra<<", "▁ab"]),
        (">>fra<<", [">>fra<<"]),
        (">>x y<<ab", [">>x y<<", "▁ab"]),
        (">>deu<< ab", ["<unk>", "▁ab"]),
        (">><<ab", ["<unk>", "▁ab"]),
        (">>>fra<< ab", ["<unk>", "▁ab"]),
        (">>a\nb<< ab", ["<unk>", "▁ab"]),
        (">>fra<<>>fra<<", [">>fra<<", "▁", "<unk>", "a", "<unk>"]),
        ("ab</s>>>deu<<ab", ["▁ab", "</s>", "<unk>", "▁ab"]),
        (">>ab", ["▁", "<unk>", "<unk>"]),
        (" >>fra<<", ["▁", "<unk>", "a", "<unk>"]),
        ("ab >>fra<< ab", ["▁ab", "▁", "<unk>", "a", "<unk>", "▁ab"]),
    ],
)
def test_a_mark_is_what_a_text_begins_with(marian, text, tokens):
    """By transformers 5.24, as are the ids of targets below."""
    ids = [VOCAB[token] for token in [*tokens, "</s>"]]
    assert marian.encode(text).ids == marian.encode_batch([text, "b"])[0].ids == ids


def test_a_mark_is_spelled_and_placed_as_it_is_written(marian):
    encoding = marian.encode("ab</s>>>deu<< ab", add_special_tokens=False)
    assert encoding.tokens == ["▁ab", "</s>", ">>deu<<", "▁ab"]
    assert encoding.offsets == [(0, 2), (2, 6), (6, 13), (14, 16)]


def test_special_tokens_in_a_text_from_outside_are_text(marian):
    ids = marian.encode(">>fra<<a</s>", add_special_tokens=False, parse_special=False).ids
    assert ids == [VOCAB[token] for token in (">>fra<<", "▁", "a", "<unk>")]


def test_targets_are_cut_by_their_own_file(marian):
    assert marian.encode("aba ßa").tokens == ["▁ab", "a", "▁", "ß", "a", "</s>"]
    assert marian.target.encode(">>fra<< aba ßa").tokens == [">>fra<<", "▁a", "ba", "▁", "ß", "a", "</s>"]
    assert pickle.loads(pickle.dumps(marian)).target.encode("aba").tokens == ["▁a", "ba", "</s>"]


def test_equal_files_make_one_tokenizer(tmp_path):
    assert Tokenizer.from_pretrained(write(tmp_path, target=SOURCE)).target is None


def test_marians_own_packages_are_told_by_their_list_of_ids(tmp_path):
    folder = write(tmp_path)
    for name in ("config.json", "tokenizer_config.json"):
        (folder / name).unlink()
    assert Tokenizer.from_file(folder).encode(">>deu<< ab").ids == [1, VOCAB["▁ab"], 0]
    (folder / "vocab.json").unlink()
    lines = [f'"{token}": {i}\n' for token, i in VOCAB.items() if token != "<pad>"]
    (folder / "opus.spm32k-vocab.yml").write_text("".join(lines), encoding="utf-8")
    own = Tokenizer.from_file(folder)
    assert own.encode(">>deu<< ab").ids == [1, VOCAB["▁ab"], 0] and own.decode([VOCAB["▁a"], VOCAB["ba"]]) == "aba" and own.pad_id is None
    (folder / "opus.trg.vocab.yml").write_text("".join(lines), encoding="utf-8")
    with pytest.raises(TokenizerError, match="a vocabulary for each language"):
        Tokenizer.from_file(folder)
    (folder / "opus.trg.vocab.yml").unlink()
    (folder / "opus.spm32k-vocab.yml").write_text("".join(lines[2:]), encoding="utf-8")
    with pytest.raises(TokenizerError, match="has no </s>"):
        Tokenizer.from_file(folder)


WORDS = "the house stands near a river; das Haus steht am Fluß, und der Fluß ist groß".split()
PARTS = [">>fra<<", ">>deu<<", ">>", "<<", ">", "<", " ", "  ", "\n", "\u3000", "\0", "</s>", "<pad>", "<unk>", "é", *WORDS]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """transformers' tokenizer of a folder with two trained files, and ours."""
    library, trainer = pytest.importorskip("transformers"), pytest.importorskip("sentencepiece")
    folder, files, pieces = tmp_path_factory.mktemp("marian"), [], {}
    for seed, words in enumerate((WORDS[:7], WORDS[7:])):
        out = io.BytesIO()
        draw = random.Random(seed)
        lines = [" ".join(draw.choices(words, k=8)) for _ in range(400)]
        trainer.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, vocab_size=40, hard_vocab_limit=False, minloglevel=2)
        files.append(out.getvalue())
        read = trainer.SentencePieceProcessor(model_proto=files[-1])
        pieces |= dict.fromkeys(map(read.id_to_piece, range(3, len(read) - 2 * seed)))
    vocab = {piece: i for i, piece in enumerate(["</s>", "<unk>", *pieces, ">>fra<<", "<pad>"])}
    write(folder, *files, vocab)
    return library.MarianTokenizer.from_pretrained(folder), Tokenizer.from_pretrained(folder)


@given(text=st.lists(st.sampled_from(PARTS), max_size=10).map("".join))
@settings(max_examples=500, deadline=None)
def test_same_as_transformers(both, text):
    theirs, ours = both
    assert ours.encode(text).ids == theirs(text).input_ids
    assert ours.target.encode(text).ids == theirs(text_target=text).input_ids
