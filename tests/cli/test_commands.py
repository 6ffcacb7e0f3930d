"""The commands of tasks on scripted models: what they print, plain and as JSON."""

import json

import pytest

from cygnet.generation.result import Usage
from cygnet.models.classifier import Classification, Ranked
from cygnet.models.masked_lm import Fill
from cygnet.models.question_answerer import Answer
from cygnet.models.seq2seq import Converted
from cygnet.models.token_classifier import Entity


class SequenceClassifier:
    def classify(self, texts, pairs=None):
        self.pairs = pairs
        return [Classification("good", 0.75, {"good": 0.75, "bad": 0.25}) for _ in texts]


class TokenClassifier:
    def tag(self, texts, aggregation):
        return [[Entity("PER", text[:2], 0, 2, 0.5)] if text else [] for text in texts]


class QuestionAnswerer:
    def answer(self, question, context, no_answer):
        return Answer(context[:3], 0, 3, 0.125)


class MaskedLM:
    def fill_mask(self, texts, top_k):
        fill = [Fill("x", 1, 0.5, "x")] * top_k
        return [[fill, fill] if "two" in text else fill for text in texts]


class CrossEncoder:
    def rerank(self, query, documents, top_k=None):
        return [Ranked(i, 1 / (1 + i), d) for i, d in enumerate(documents)][:top_k]


class Seq2Seq:
    def translate(self, texts, source=None, target=None, **options):
        self.asked = source, target, options
        return [Converted(text.upper(), False, Usage(1, 1)) for text in texts]

    def summarize(self, texts, truncate=False, **options):
        return [Converted(text[:3], truncate, Usage(1, 1)) for text in texts]


@pytest.mark.parametrize(
    "kind, arguments, plain, field, value",
    [
        (SequenceClassifier, ["classify", "a", "b"], "good\t0.7500\ta\ngood\t0.7500\tb\n", "label", "good"),
        (
            TokenClassifier,
            ["tag", "Ann", ""],
            "PER\t0\t2\t0.5000\tAn\n",
            "entities",
            [{"label": "PER", "text": "An", "start": 0, "end": 2, "score": 0.5}],
        ),
        (QuestionAnswerer, ["answer", "who?", "Ann did"], "Ann\t0.1250\n", "start", 0),
        (MaskedLM, ["fill", "--top-k", "2", "a"], "x 0.5000\tx 0.5000\n", "text", "a"),
        (CrossEncoder, ["rerank", "q", "a", "b"], "1.0000\t0\ta\n0.5000\t1\tb\n", "document", "a"),
        (Seq2Seq, ["translate", "a\nb"], "A\nB\n", "translation", "A\nB"),
        (Seq2Seq, ["summarize", "abcdef"], "abc\n", "summary", "abc"),
    ],
)
def test_output(run, model, kind, arguments, plain, field, value):
    model(kind)
    command, *rest = arguments
    assert run(command, "-m", "m", *rest) == (0, plain, "")
    assert json.loads(run(command, "-m", "m", "--json", *rest)[1].splitlines()[0])[field] == value


def test_pairs_of_texts(run, model, tmp_path):
    instance = model(SequenceClassifier)
    assert run("classify", "-m", "m", "--pair", "He rests", "a", "b")[1] == "good\t0.7500\ta\tHe rests\ngood\t0.7500\tb\tHe rests\n"
    assert instance.pairs == ["He rests", "He rests"]
    assert run("classify", "-m", "m", "--pairs", stdin="a\tb\nc\td\n")[1].splitlines()[1] == "good\t0.7500\tc\td"
    (tmp_path / "pairs.jsonl").write_text('["a", "b"]\n')
    assert json.loads(run("classify", "-m", "m", "--pairs", "--json", "-f", str(tmp_path / "pairs.jsonl"))[1])["pair"] == "b"
    assert "line 2: two texts with a tab between" in run("classify", "-m", "m", "--pairs", stdin="a\tb\nc\n")[2]
    assert "choose one" in run("classify", "-m", "m", "--pairs", "--pair", "x", "a")[2]


def test_two_masks(run, model):
    model(MaskedLM)
    assert run("fill", "-m", "m", "--top-k", "1", "two")[1] == "x 0.5000\nx 0.5000\n"


def test_languages(run, model):
    instance = model(Seq2Seq)
    run("translate", "-m", "m", "--from", "en", "--to", "fr", "--num-beams", "2", "a")
    assert instance.asked == ("en", "fr", {"num_beams": 2})


def test_lines_of_standard_input(run, model):
    model(CrossEncoder)
    assert run("rerank", "-m", "m", "--top-k", "1", "q", stdin="x\ny\n")[1] == "1.0000\t0\tx\n"
