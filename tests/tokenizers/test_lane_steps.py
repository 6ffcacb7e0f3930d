"""Lanes with normalizers in front, and texts that are not cut into words: the compiled way against the stages, and against the tokenizers library."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lane_documents import (
    BYTES,
    LOWERCASE,
    NFC,
    NFD,
    NFKC,
    NFKD,
    NMT,
    SPLIT_FIRST,
    SPLIT_FIRST_WHOLE,
    STRIP_ACCENTS,
    in_order,
    metaspace,
    replace,
    shapes,
    strip,
    unigram_document,
)

from cygnet.tokenizers import Tokenizer

SPECIAL = [["<unk>", 0.0], ["<s>", -1.0], ["<pad>", -1.0], ["</s>", -1.0]]
PIECES = [["▁", -2.0], ["a", -1.0], ["▁a", -1.5], ["ab", -1.2], ["b", -3.0], ["é", -4.0], ["한", -2.5], ["'", -3.0], [chr(34), -3.0], ["aa", -2.0]]
APART = SPECIAL + PIECES
JOINED = [*APART, ["▁▁", -6.0], ["b▁", -2.2], ["a▁a", -2.4]]
VOCABULARIES = {"apart": (APART, False), "joined": (JOINED, False), "bytes": (SPECIAL + BYTES + PIECES, True), "joined-bytes": (JOINED + BYTES, True)}

STEPS = [NFC, NFD, NFKC, NFKD, LOWERCASE, STRIP_ACCENTS, NMT, strip(), strip(right=False), strip(left=False), {"type": "Prepend", "prepend": " ▁"}]
STEPS += [replace("``", '"'), replace(" ", "▁"), replace("a", ""), replace("é", "xyz"), replace("b", "aa", "Regex")]
STEPS += [replace(p, c, "Regex") for p in (" {2,}", " +", r"\s+", r"\s{2,}", " {3,}") for c in (" ", "▁", "")]
WORDS = [None, SPLIT_FIRST, SPLIT_FIRST_WHOLE, *(metaspace(scheme, split) for scheme in ("always", "first", "never") for split in (True, False))]
ODD = "ab  ▁é한각ẹ̈\u0301\u0323\u0345\u0085\u3000\u200b\r\n\t\0👍\u200d`'İǅﬁ㎏½\u1100\u1161\u11a8\u0958\u0f73\U0001d15e\U000110a5\U000110ba"
TEXTS = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])), max_size=40)


def both_ways(tokenizer, text):
    """The ids of the lane, in a fresh workspace or a used one, and of the stages."""
    return tokenizer.encode(text, add_special_tokens=False).ids, tokenizer.pipeline.aligned(text, True).ids


@given(st.lists(st.sampled_from(STEPS), max_size=4), st.sampled_from(WORDS), st.sampled_from(sorted(VOCABULARIES)), st.lists(TEXTS, max_size=3))
@settings(max_examples=600, deadline=None)
def test_lane_equals_the_stages(steps, words, kind, texts):
    vocab, fallback = VOCABULARIES[kind]
    tokenizer = Tokenizer.from_json(unigram_document(vocab, in_order(*steps), words, fallback))
    assert tokenizer.pipeline.runner is not None
    for text in texts + texts:
        lane, stages = both_ways(tokenizer, text)
        assert lane == stages


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_forms_of_every_character(form):
    """Each character after a base and before marks that go in front of it, and beside each of Hangul's three kinds."""
    vocab, fallback = VOCABULARIES["bytes"]
    tokenizer = Tokenizer.from_json(unigram_document(vocab, {"type": form}, None, fallback))
    characters = [
        *map(chr, [*range(0xA0, 0x3400), *range(0xA000, 0xAC40), *range(0xF900, 0x10000), *range(0x10900, 0x11400), *range(0x1D100, 0x1D900)])
    ]
    for at in range(0, len(characters), 4000):
        for before, after in (("a", "\u0301\u0323"), ("\u1100", "\u1161"), ("\uac00", "\u11a8"), ("\u0301", "é")):
            lane, stages = both_ways(tokenizer, "".join([before + c + after for c in characters[at : at + 4000]]))
            assert lane == stages


@pytest.mark.parametrize("form", ["NFD", "NFC"])
@pytest.mark.parametrize("count", [63, 64, 65, 5000])
def test_long_runs_of_marks(form, count):
    vocab, fallback = VOCABULARIES["bytes"]
    tokenizer = Tokenizer.from_json(unigram_document(vocab, {"type": form}, None, fallback))
    lane, stages = both_ways(tokenizer, "a" + "\u0323\u0301" * (count // 2) + "\u0323" * (count % 2) + "é")
    assert lane == stages


@pytest.mark.parametrize("words", [metaspace(split=False), None])
@pytest.mark.parametrize("kind", sorted(VOCABULARIES))
def test_ways_of_equal_score_in_long_texts(words, kind):
    """Rounding of the score before a word decides between its ways, so that the same word is cut in different ways."""
    draw = random.Random(5)
    vocab, fallback = VOCABULARIES[kind]
    vocab = [[piece, score and score * 1.1 - 0.123456789] for piece, score in vocab]
    vocab += [[sign * n, -0.7 * n - 0.1] for sign in "-=" for n in range(1, 6)]
    tokenizer = Tokenizer.from_json(unigram_document(vocab, None, words, fallback))
    cuts = set()
    for _ in range(30):
        text = "".join(draw.choices(["---", "=====", "-------", "aab", " ", "▁", "ж", "é"], k=400))
        lane, stages = both_ways(tokenizer, text)
        assert lane == stages
        tokens = tokenizer.encode(text.replace("=", " ")).tokens
        cuts.update("|".join(tokens[i : i + 2]) for i in range(len(tokens)) if "".join(tokens[i : i + 2]) == "-------")
    assert len(cuts) > 1 or kind.startswith("joined")


def test_time_in_proportion_to_the_text():
    for kind in ("apart", "joined"):
        tokenizer = Tokenizer.from_json(unigram_document(VOCABULARIES[kind][0], NFKC, metaspace(split=False)))
        assert len(tokenizer.encode("ab" * 500_000).ids) == 500_001
        assert len(tokenizer.encode("\u0301" * 100_000).ids) == 2


@pytest.mark.parametrize("name", sorted(shapes()))
@pytest.mark.parametrize("kind", sorted(VOCABULARIES))
def test_shapes_of_real_models_equal_the_library(name, kind, tmp_path):
    pytest.importorskip("tokenizers", minversion="0.15")  # a version: this folder has the same name
    from compare_with_peers import compare
    from peer_libraries import TokenizersPeer

    vocab, fallback = VOCABULARIES[kind]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(unigram_document(vocab, *shapes()[name], fallback)), encoding="utf-8")
    peer = TokenizersPeer(path)
    assert peer.ours.pipeline.runner is not None
    differing, report = compare(peer, 60, seed=3)
    assert differing == 0, "\n".join(report)


BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
WORD_PIECES = {"[UNK]": 0, "a": 1, "##b": 2, "ab": 3, "é": 4, "##é": 5, "한": 6, ".": 7, "i": 8, "##a": 9, "e": 10, "'": 11}


@given(st.lists(st.sampled_from(STEPS), max_size=3), st.booleans(), TEXTS)
@settings(max_examples=300, deadline=None)
def test_word_piece_lane_equals_the_stages(steps, bert, text):
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": WORD_PIECES}
    normalizer = in_order(*steps, *[BERT] * bert)
    tokenizer = Tokenizer.from_json({"normalizer": normalizer, "pre_tokenizer": {"type": "BertPreTokenizer"}, "model": model})
    assert tokenizer.pipeline.runner is not None
    lane, stages = both_ways(tokenizer, text)
    assert lane == stages
