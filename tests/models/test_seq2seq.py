"""Seq2Seq on scripted engines: languages, lines, long texts, summaries, scores."""

import json

import numpy as np
import pytest

from cygnet import Tokenizer
from cygnet.architectures.spec import ModelKind, TokenIds
from cygnet.errors import ContextOverflow, OptionError
from cygnet.models.seq2seq import Seq2Seq
from cygnet.tokenizers.wordlevel import WordLevel
from tests.generation.fakes import FakeEngine
from tests.models.generative_parts import WORDS, log_softmax, parts, word_tokenizer

EOS = WORDS.index("</s>")
GREEDY = {"temperature": 0}


def ids_of(*words):
    return [WORDS.index(word) for word in words]


class EchoEngine(FakeEngine):
    """The decoder repeats the source, then ends."""

    def logits(self, ids, source):
        row = np.zeros(self.vocab_size, np.float32)
        said = len(ids) - 1
        row[source.ids[said] if said < len(source.ids) else EOS] = 9
        return row


def model(folder, tokenizer=None, max_context=40, tokens=None, config=None):
    engine = EchoEngine(len(WORDS), max_context=max_context)
    tokens = tokens or TokenIds(eos=(EOS,), pad=0, decoder_start=0)
    made = parts(folder, engine=engine, tokenizer=tokenizer or word_tokenizer(), tokens=tokens, kind=ModelKind.ENCODER_DECODER, config=config)
    return Seq2Seq(type(made)(made.spec, engine, made.tokenizer, folder, made.config, max_context))


class TestGenerate:
    def test_source_to_text(self, tmp_path):
        with model(tmp_path) as m:
            found = m.generate("a b c", **GREEDY)
            assert found.text.split() == ["a", "b", "c"] and found.finish_reason == "stop"
            assert found.usage.prompt_tokens == 3
            assert [g.ids for g in m.generate(["a", [9, 10]], **GREEDY)] == [ids_of("a", "</s>"), [9, 10, EOS]]
            assert m.generate([], **GREEDY) == []

    def test_source_beyond_the_positions(self, tmp_path):
        with model(tmp_path, max_context=10) as m:
            with pytest.raises(ContextOverflow, match="the source has 12 tokens, the model takes 10"):
                m.generate("a " * 12)
            assert m.generate("a " * 12, truncate=True, **GREEDY).truncated_tokens == 2

    @pytest.mark.parametrize("tokens, start", [(TokenIds(decoder_start=3, bos=1, pad=0), 3), (TokenIds(bos=1, pad=0), 1), (TokenIds(pad=0), 0)])
    def test_decoder_start(self, tmp_path, tokens, start):
        with model(tmp_path, tokens=tokens) as m:
            assert m._request("a", m.options(), False)[0].prompt_ids == [start]

    def test_no_decoder_start(self, tmp_path):
        with model(tmp_path, tokens=TokenIds(eos=(2,))) as m, pytest.raises(OptionError, match="decoding has no start"):
            m.generate("a")


class TestLanguages:
    @pytest.mark.parametrize(
        "settings, source, start, forced",
        [
            ({"tokenizer_class": "NllbTokenizer"}, ["eng_Latn", "a", "</s>"], 0, "fra_Latn"),
            ({"tokenizer_class": "NllbTokenizer", "legacy_behaviour": True}, ["a", "</s>", "eng_Latn"], 0, "fra_Latn"),
            ({"tokenizer_class": "MBart50TokenizerFast"}, ["eng_Latn", "a", "</s>"], 0, "fra_Latn"),
            ({"tokenizer_class": "MBartTokenizer"}, ["a", "</s>", "eng_Latn"], WORDS.index("fra_Latn"), None),
        ],
    )
    def test_marks_of_the_families(self, tmp_path, settings, source, start, forced):
        with model(tmp_path, word_tokenizer(eos_token="</s>", **settings)) as m:
            requests, _ = m._language_requests("a", "eng", "fra", False, m.options())
            assert list(requests[0].source_ids) == ids_of(*source)
            assert requests[0].prompt_ids == [start]
            assert requests[0].options.forced_bos == (WORDS.index(forced) if forced else None)

    def test_first_token_is_the_target(self, tmp_path):
        with model(tmp_path, word_tokenizer(tokenizer_class="NllbTokenizer", eos_token="</s>")) as m:
            assert m.generate("a b", source_language="eng", target_language="fra", **GREEDY).ids[0] == WORDS.index("fra_Latn")

    def test_unknown_language(self, tmp_path):
        with model(tmp_path, word_tokenizer(tokenizer_class="NllbTokenizer")) as m:
            with pytest.raises(OptionError, match="target language 'xx' is not known; languages are eng_Latn, fra_Latn"):
                m.translate("a", source="eng", target="xx")

    def test_model_without_languages(self, tmp_path):
        tokenizer = word_tokenizer()
        tokenizer.added.tokens = [token for token in tokenizer.added.tokens if "Latn" not in token.content]
        with model(tmp_path, tokenizer) as m, pytest.raises(OptionError, match="knows no language marks"):
            m.translate("a", target="fra")

    def test_words_that_ask_for_a_translation(self, tmp_path):
        tokenizer = word_tokenizer()
        tokenizer.added.tokens = []
        config = {"task_specific_params": {"translation_en_to_de": {"prefix": "x y : "}}}
        with model(tmp_path, tokenizer, config=config) as m:
            assert m.translate("a", source="en", target="de", **GREEDY).text.split() == ["x", "y", ":", "a"]


class TestTranslate:
    def test_lines_stay_lines(self, tmp_path):
        text = "a b\n\n  c\r\n \nd\n"
        with model(tmp_path) as m:
            found = m.translate(text, **GREEDY)
            assert found.text == text and not found.truncated
            assert m.translate(["a", "", "\n"], **GREEDY)[1].text == ""
            assert m.translate("", **GREEDY).text == "" and m.translate([], **GREEDY) == []

    def test_long_lines_are_cut_between_sentences(self, tmp_path):
        text = " ".join(["a b c ."] * 30) + "\n" + "x " * 50 + "z"
        with model(tmp_path, max_context=10) as m:
            found = m.translate(text, max_new_tokens=20, **GREEDY)
            assert found.text.split() == text.split() and not found.truncated
            assert found.text.count("\n") == 1
            assert found.usage.prompt_tokens == len(m.encode_text(text))

    def test_one_word_of_thousands_of_letters(self, tmp_path):
        with model(tmp_path, max_context=10) as m:
            assert len(m.translate("." * 5000, max_new_tokens=20, **GREEDY).text.replace(" ", "")) == 5000

    def test_an_answer_that_is_cut_is_told(self, tmp_path):
        with model(tmp_path) as m:
            assert m.translate("a b c", max_new_tokens=2, **GREEDY).truncated

    def test_ids_are_refused(self, tmp_path):
        with model(tmp_path) as m, pytest.raises(OptionError, match="translate needs texts"):
            m.translate([8, 9])


def test_summarize(tmp_path):
    config = {"task_specific_params": {"summarization": {"prefix": "s : ", "max_length": 5, "early_stopping": True}}}
    with model(tmp_path, config=config, max_context=10) as m:
        found = m.summarize("a b c d", **GREEDY)
        assert found.text.split() == ["s", ":", "a", "b"] and found.truncated
        with pytest.raises(ContextOverflow):
            m.summarize("a " * 20)
        assert m.summarize(["a " * 20], truncate=True, **GREEDY)[0].truncated


def test_generation_config_of_the_folder(tmp_path):
    (tmp_path / "generation_config.json").write_text(json.dumps({"num_beams": 3, "length_penalty": 0.5, "forced_bos_token_id": 9}))
    with model(tmp_path) as m:
        assert (m.options().num_beams, m.options().length_penalty, m.options().forced_bos) == (3, 0.5, None)


class TestForwardAndScore:
    def test_forward(self, tmp_path):
        with model(tmp_path) as m:
            logits = m.forward([8, 9], [0, 8])
            assert logits.argmax(axis=1).tolist() == [8, 9]
            assert [rows.shape for rows in m.forward([[8], [9]], [[0], [0, 9]])] == [(1, len(WORDS)), (2, len(WORDS))]
            with pytest.raises(OptionError, match="2 sources and 1 decoder inputs"):
                m.forward([[8], [9]], [[0]])
            assert not m.engine.live and not m.engine.sources

    def test_targets_are_read_by_the_tokenizer_of_their_language(self, tmp_path):
        tokenizer = word_tokenizer()
        tokenizer.target = Tokenizer(WordLevel({"<unk>": 0, "a b": 1}, "<unk>"))
        with model(tmp_path, tokenizer) as m:
            assert m.score("a b", "a b").ids == [1, EOS]
            assert m.score("a b", "a b").logprobs[0] == m.score(ids_of("a", "b"), [1]).logprobs[0]

    def test_score(self, tmp_path):
        with model(tmp_path) as m:
            found = m.score("a b", "a c")
            logits = log_softmax(m.forward(ids_of("a", "b"), [0, *ids_of("a", "c")]))
            np.testing.assert_allclose(found.logprobs, logits[[0, 1, 2], ids_of("a", "c", "</s>")], atol=1e-5)
            assert [len(s.ids) for s in m.score(["a", "b"], [[8], [8, 9]])] == [1, 2]
            with pytest.raises(OptionError, match="1 texts and 2 targets"):
                m.score("a", ["b", "c"])
