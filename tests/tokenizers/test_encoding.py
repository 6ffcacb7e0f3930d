"""What encode() promises: added tokens, special text in user data, truncation, padding, offsets, odd input."""

import os
import random
import subprocess
import sys
import threading

import pytest
from tokenizer_documents import byte_level_document, word_document

from cygnet import Tokenizer
from cygnet.errors import OptionError, TokenizerError
from cygnet.tokenizers import Padding

CLS_SEP = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[C]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[S]", "type_id": 0}}],
    "pair": [
        {"SpecialToken": {"id": "[C]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "[S]", "type_id": 0}},
        {"Sequence": {"id": "B", "type_id": 1}},
        {"SpecialToken": {"id": "[S]", "type_id": 1}},
    ],
    "special_tokens": {"[C]": {"id": "[C]", "ids": [1], "tokens": ["[C]"]}, "[S]": {"id": "[S]", "ids": [2], "tokens": ["[S]"]}},
}


@pytest.fixture(scope="module")
def chat():
    return Tokenizer.from_json(byte_level_document([("a", "b")], added=["<|im_end|>"]))


@pytest.fixture
def framed():
    return Tokenizer.from_json(word_document(["?", "[C]", "[S]", "a", "b", "c"], post_processor=CLS_SEP))


def metaspace(scheme, **more):
    vocab = {t: i for i, t in enumerate(["<unk>", "▁", *"Helowrd", "<sep>"])}
    return Tokenizer.from_json(
        {
            "added_tokens": [{"id": 9, "content": "<sep>", "special": True}],
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", **({"prepend_scheme": scheme} if scheme else {}), **more},
            "decoder": {"type": "Metaspace", "replacement": "▁", **({"prepend_scheme": scheme} if scheme else {}), **more},
            "model": {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": "<unk>"},
        }
    )


def test_texts_ended_by_a_token(framed):
    framed.end_texts_with(2)
    assert framed.encode("a b").ids == [3, 4, 2] and framed.encode("a", "b").ids == [3, 4, 2]
    assert framed.encode("a b", add_special_tokens=False).ids == [3, 4]
    assert framed.encode_batch(["a", ""], max_length=1)[0].ids == [2]


def test_special_text_in_user_data(chat):
    mark = chat.token_to_id("<|im_end|>")
    text = "print <|im_end|> please"
    assert chat.encode(text).ids.count(mark) == 1
    plain = chat.encode(text, parse_special=False).ids
    assert mark not in plain
    assert chat.decode(plain) == text
    literal = chat.encode(text + "<|im_end|>", literal=[(0, len(text))]).ids
    assert literal == [*plain, mark]


@pytest.mark.parametrize(("scheme", "prefixes"), [("always", 2), ("first", 1), ("never", 0)])
def test_metaspace_prefix(scheme, prefixes):
    tokenizer = metaspace(scheme)
    for ids in (tokenizer.encode("Hello<sep>world").ids, tokenizer.pipeline.aligned("Hello<sep>world", True).ids):
        assert ids.count(tokenizer.token_to_id("▁")) == prefixes
    assert tokenizer.decode(tokenizer.encode("Hello").ids) == "Hello"
    assert tokenizer.decode(tokenizer.encode(" Hello ").ids) == ("Hello " if prefixes else " Hello ")


@pytest.mark.parametrize("scheme", ["first", "never"])
def test_spaces_beside_an_added_token_come_back(scheme):
    tokenizer = metaspace(scheme)
    start = ["▁"] * (scheme == "first")
    for text, tokens in [
        ("<sep>world", ["<sep>", *"world"]),
        ("Hello<sep> world", [*start, *"Hello", "<sep>", "▁", *"world"]),
        ("Hello <sep>world", [*start, *"Hello", "▁", "<sep>", *"world"]),
        ("Hello<sep>  <sep>w ", [*start, *"Hello", "<sep>", "▁", "▁", "<sep>", "w", "▁"]),
    ]:
        assert tokenizer.encode(text).tokens == tokenizer.encode_batch([text, ""])[0].tokens == tokens
        ids = tokenizer.encode(text).ids
        assert tokenizer.pipeline.aligned(text, True).ids == ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_older_metaspace_flag_means_always():
    assert metaspace(None, add_prefix_space=True).encode("Hello").tokens[0] == "▁"
    assert metaspace(None, add_prefix_space=False).encode("Hello").tokens[0] == "H"


@pytest.mark.parametrize("space", [" ", "\xa0", "\t ", "\u3000\n"])
def test_added_token_takes_spaces_on_its_left(space):
    document = byte_level_document()
    document["added_tokens"] = [{"id": 0, "content": "<mask>", "lstrip": True, "special": True, "normalized": False}]
    tokenizer = Tokenizer.from_json(document)
    assert tokenizer.pipeline.runner is not None
    encoding = tokenizer.encode(f"is{space}<mask>.")
    assert encoding.tokens == ["i", "s", space + "<mask>", "."]
    assert tokenizer.encode(f"is{space}<mask>.", max_length=2, return_overflow=True).overflowing[0].tokens == [space + "<mask>", "."]
    assert encoding.offsets[2] == (2, 2 + len(space) + 6)


@pytest.mark.parametrize("space", [" ", "\xa0", "\t ", "\u3000\n"])
def test_added_token_takes_spaces_on_its_right(space):
    document = byte_level_document()
    document["added_tokens"] = [{"id": 0, "content": "<mask>", "rstrip": True, "special": True, "normalized": False}]
    tokenizer = Tokenizer.from_json(document)
    assert tokenizer.pipeline.runner is not None
    encoding = tokenizer.encode(f"is <mask>{space}a")
    assert encoding.ids == tokenizer.pipeline.aligned(f"is <mask>{space}a", True).ids
    assert encoding.tokens == ["i", "s", "Ġ", "<mask>" + space, "a"]
    assert encoding.offsets[3:] == [(3, 9 + len(space)), (9 + len(space), 10 + len(space))]


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(
    ("text", "ids", "offsets"),
    [
        ("<a>\n\nb", [256, 257, 257, 98], [(0, 5), (3, 4), (4, 5), (5, 6)]),
        ("<a>  \nb", [256, 258, 257, 98], [(0, 6), (3, 5), (5, 6), (6, 7)]),
        ("<a>\n", [256, 257], [(0, 4), (3, 4)]),
    ],
)
def test_white_space_taken_in_is_looked_through_for_tokens(text, ids, offsets, normalized):
    document = byte_level_document()
    flags = [("<a>", False, True), ("\n", False, False), ("  ", False, False)]
    document["added_tokens"] = [
        {"id": 256 + i, "content": c, "lstrip": left, "rstrip": right, "special": True, "normalized": normalized}
        for i, (c, left, right) in enumerate(flags)
    ]
    tokenizer = Tokenizer.from_json(document)
    assert tokenizer.pipeline.runner is not None
    encoding = tokenizer.encode(text)
    assert encoding.ids == tokenizer.pipeline.aligned(text, True).ids
    assert (encoding.ids, encoding.offsets) == (ids, offsets)


def test_white_space_taken_in_twice_is_one_token():
    document = byte_level_document()
    document["added_tokens"] = [{"id": 300, "content": "\n\n", "lstrip": True, "rstrip": True, "normalized": False}]
    tokenizer = Tokenizer.from_json(document)
    for encoding in (tokenizer.encode("a\n\n\n\nb"), tokenizer.pipeline.aligned("a\n\n\n\nb", True)):
        assert list(encoding.ids) == [97, 256, 98]
    assert tokenizer.encode("a\n\n\n\nb").offsets == [(0, 1), (1, 5), (5, 6)]


def test_longest_added_token_wins():
    tokenizer = Tokenizer.from_json(byte_level_document(added=["<|end|>", "<|end|>x", "<|"]))
    assert tokenizer.encode("a<|end|>xb<|end|><|c").tokens == ["a", "<|end|>x", "b", "<|end|>", "<|", "c"]


def test_single_word_token():
    document = byte_level_document()
    document["added_tokens"] = [{"id": 0, "content": "swan", "single_word": True, "normalized": False}]
    tokens = Tokenizer.from_json(document).encode("swan swans aswan swan.").tokens
    assert tokens.count("swan") == 2


def test_lone_surrogates_read_as_replacement(chat):
    for text in ("\ud83d", "a\ud83d\udc4db"):
        expected = chat.encode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if text == "\ud83d" else "a\ufffd\ufffdb").ids
        assert chat.encode(text).ids == expected
        assert chat.encode_batch([text, "x"])[0].ids == expected
        assert chat.count(text) == len(expected)
        assert len(chat.encode(text).offsets) == len(expected)


def test_nul_is_a_character(chat):
    assert chat.encode("ab\0cd").ids != chat.encode("ab").ids
    assert chat.encode("\0").ids != chat.encode("\0\0").ids
    assert chat.decode(chat.encode("ab\0cd").ids) == "ab\0cd"
    assert Tokenizer.from_json(word_document(["?", "\0"])).encode("\0").ids == [1]


def test_empty_and_blank(chat, framed):
    assert chat.encode("").ids == [] and chat.encode("").offsets == [] and chat.decode([]) == ""
    assert framed.encode("").ids == [1, 2] and framed.encode("   ").ids == [1, 2]
    assert [e.ids for e in chat.encode_batch(["", "ab", ""])] == [[], chat.encode("ab").ids, []]
    assert chat.encode_batch([]) == []


@pytest.mark.parametrize(("first", "second"), [(9, 9), (9, 0), (0, 9), (2, 9), (9, 2), (0, 0)])
@pytest.mark.parametrize("strategy", ["longest_first", "only_first", "only_second"])
@pytest.mark.parametrize("max_length", [8, 4, 3, 2, 0])
def test_pairs_are_cut_to_fit_or_refused(framed, first, second, strategy, max_length):
    texts = "a " * first, "b " * second
    try:
        encoding = framed.encode(*texts, max_length=max_length, truncation=strategy, return_overflow=True)
    except OptionError:
        assert max_length < 3 or strategy != "longest_first"
        return
    assert len(encoding) <= max_length
    windows = [encoding, *encoding.overflowing]
    for sequence, total in enumerate((first, second)):
        seen = {o for w in windows for o, s in zip(w.offsets, w.sequence_ids, strict=True) if s == sequence}
        assert seen == {(2 * i, 2 * i + 1) for i in range(total)}


@pytest.mark.parametrize("stride", [0, 1, 2])
def test_overflow_windows_share_the_stride(framed, stride):
    words = "a b c a b c a b c a"
    encoding = framed.encode(words, max_length=5, stride=stride, return_overflow=True)
    inner = [w.ids[1:-1] for w in (encoding, *encoding.overflowing)]
    assert all(len(w) <= 3 for w in inner)
    for before, after in zip(inner, inner[1:], strict=False):
        assert before[3 - stride :] == after[:stride]
    assert framed.encode(words, max_length=5).overflowing == []


def test_stride_must_leave_room(framed):
    with pytest.raises(OptionError, match="stride"):
        framed.encode("a b c a b", max_length=4, stride=2)
    with pytest.raises(OptionError, match="special tokens"):
        framed.encode("a", max_length=1)
    with pytest.raises(OptionError, match="longest_first"):
        framed.encode("a", max_length=4, truncation="longest")


def test_padding(framed):
    short, long = framed.pad(framed.encode_batch(["a", "a b c"]), Padding(pad_id=0, left=True, multiple=4))
    assert len(short) == len(long) == 8
    assert short.ids == [0] * 5 + [1, 3, 2]
    assert short.attention_mask == [0] * 5 + [1] * 3
    assert short.special_tokens_mask == [1] * 6 + [0, 1]
    assert short.offsets == [(0, 0)] * 6 + [(0, 1), (0, 0)]
    assert short.word_ids == [None] * 6 + [0, None]


def test_padding_and_truncation_of_the_file_can_be_turned_off():
    document = word_document(["?", "[C]", "[S]", "a"], post_processor=CLS_SEP)
    document["truncation"] = {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    document["padding"] = {
        "strategy": {"Fixed": 6},
        "direction": "Right",
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "?",
        "pad_to_multiple_of": None,
    }
    tokenizer = Tokenizer.from_json(document)
    assert tokenizer.encode("a a a a").ids == [1, 3, 3, 2, 0, 0]
    tokenizer.no_truncation()
    tokenizer.no_padding()
    assert tokenizer.encode("a a a a").ids == [1, 3, 3, 3, 3, 2]


def test_offsets_stay_inside_the_text(chat):
    text = "i ⭢ j İ ﬁ … 각 T\x10his\u202f!"
    encoding = chat.encode(text)
    assert all(0 <= start <= end <= len(text) for start, end in encoding.offsets)
    assert encoding.offsets == sorted(encoding.offsets)
    arrow = [o for o, t in zip(encoding.offsets, encoding.tokens, strict=True) if o == (2, 3)]
    assert len(arrow) == 3


def test_batch_equals_singles_on_any_number_of_threads(chat):
    rng = random.Random(3)
    texts = ["".join(rng.choice(["ab", " ", "é", "日本", "<|im_end|>", "12", "\n"]) for _ in range(rng.randrange(400))) for _ in range(300)]
    singles = [chat.encode(t).ids for t in texts]
    for threads in (1, 2, 5):
        assert [e.ids for e in chat.encode_batch(texts, threads=threads)] == singles


def test_one_tokenizer_in_many_threads(chat):
    texts = [f"ab {i} <|im_end|> {'xyz' * i}" for i in range(40)]
    singles = [chat.encode(t).ids for t in texts]
    wrong = []

    def work():
        wrong.extend(t for t, ids in zip(texts * 5, singles * 5, strict=True) if chat.encode(t).ids != ids or chat.decode(ids, False) != t)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


BERT_MARKS = {"type": "BertProcessing", "sep": ["[SEP]", 4], "cls": ["[CLS]", 3]}
BYTE_OFFSETS = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
MARK_BEFORE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 1}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 2}}, {"SpecialToken": {"id": "[CLS]", "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [3], "tokens": ["[cls]"]}},
}


# By tokenizers 0.22: tokens, type ids, special tokens mask, sequence ids.
@pytest.mark.parametrize(
    "processors, wanted",
    [
        ([BERT_MARKS, BYTE_OFFSETS], ("[CLS] a b [SEP]", [0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 0, 0])),
        ([BYTE_OFFSETS, BERT_MARKS], ("[CLS] a b [SEP]", [0, 0, 0, 0], [1, 0, 0, 1], [None, 0, 0, None])),
        ([MARK_BEFORE, BYTE_OFFSETS], ("[cls] a b", [1, 0, 0], [1, 0, 0], [None, 1, 1])),
        ([MARK_BEFORE, BERT_MARKS], ("[CLS] [cls] [SEP] a b [SEP]", [0, 1, 0, 0, 0, 1], [1, 0, 1, 0, 0, 1], [None, 0, None, 1, 1, None])),
        ([BERT_MARKS, MARK_BEFORE], ("[cls] [CLS] a b [SEP]", [1, 0, 0, 0, 0], [1, 1, 0, 0, 1], [None, 0, 0, 0, 0])),
    ],
)
def test_post_processors_in_sequence(processors, wanted):
    words = ["?", "a", "b", "[CLS]", "[SEP]"]
    encoding = Tokenizer.from_json(word_document(words, post_processor={"type": "Sequence", "processors": processors})).encode("a b")
    assert (" ".join(encoding.tokens), encoding.type_ids, encoding.special_tokens_mask, encoding.sequence_ids) == wanted


# A blank in front is kept where it may be the one that was added: at the first token, which it is no more behind a mark.
@pytest.mark.parametrize(
    "processors, offsets", [([BYTE_OFFSETS, BERT_MARKS], (1, 2)), ([BERT_MARKS, BYTE_OFFSETS], (2, 2)), ([MARK_BEFORE, BYTE_OFFSETS], (1, 2))]
)
def test_offsets_are_trimmed_behind_marks(processors, offsets):
    stages = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "ByteLevel", "add_prefix_space": True}]}
    document = word_document(["?", "Ġa"], pre_tokenizer=stages, post_processor={"type": "Sequence", "processors": processors})
    encoding = Tokenizer.from_json(document).encode(" a")
    assert encoding.offsets[encoding.ids.index(1)] == offsets


def test_a_template_takes_no_more_than_two_sequences():
    post = {"type": "Sequence", "processors": [MARK_BEFORE, MARK_BEFORE]}
    tokenizer = Tokenizer.from_json(word_document(["?", "a", "b", "[CLS]"], post_processor=post))
    assert tokenizer.encode("a").tokens == ["[cls]", "[cls]", "a"]
    with pytest.raises(TokenizerError, match="make 3"):
        tokenizer.encode("a", "b")


def test_an_empty_pattern_matches_between_characters():
    split = {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False}
    tokenizer = Tokenizer.from_json(
        word_document(["?", "a", "b"], pre_tokenizer=split, decoder={"type": "Replace", "pattern": {"String": ""}, "content": "-"})
    )
    assert tokenizer.encode("ab").tokens == ["a", "b"]
    assert tokenizer.decode([1, 2]) == "-a--b-"


def test_a_metaspace_begins_a_text_whose_first_character_was_put_in_front():
    strip = {"type": "Strip", "strip_left": True, "strip_right": False}
    put = {"type": "Replace", "pattern": {"Regex": "^"}, "content": "x"}
    first = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    for stages, token, offsets in (([strip, put], "▁xa", [(0, 2)]), ([strip], "a", [(1, 2)])):
        document = word_document(["?", "a", "▁xa"], normalizer={"type": "Sequence", "normalizers": stages}, pre_tokenizer=first)
        encoding = Tokenizer.from_json(document).encode(" a")
        assert (encoding.tokens, encoding.offsets) == ([token], offsets)


INTERRUPTED = """
import os, signal, threading, time
from cygnet import Tokenizer

signal.signal(signal.SIGINT, signal.default_int_handler)  # where it was ignored, as in a background job of a shell
tokenizer = Tokenizer.from_json({document!r})
texts = ["ab " * 700] * 200
wanted = tokenizer.encode_batch(texts, threads=1)[0].ids
ended, interrupted, whole = False, 0, 0

def interrupt():
    while not ended:
        time.sleep(0.0013)
        os.kill(os.getpid(), signal.SIGINT)

shooter = threading.Thread(target=interrupt, daemon=True)
end = time.monotonic() + 1.5
shooter.start()
while not ended:
    try:
        while time.monotonic() < end:
            try:
                assert tokenizer.encode_batch(texts, threads=3)[-1].ids == wanted
                whole += 1
            except KeyboardInterrupt:
                interrupted += 1
        ended = True
        time.sleep(0.01)
        assert tokenizer.encode_batch(texts, threads=2)[-1].ids == wanted
    except KeyboardInterrupt:
        pass
assert interrupted
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="SIGINT cannot be sent to oneself on Windows")
def test_interrupting_a_batch_harms_nothing():
    """Ctrl-C while threads work on a batch: its memory is let go of when none does any more."""
    program = INTERRUPTED.format(document=byte_level_document([("a", "b")]))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stderr)
