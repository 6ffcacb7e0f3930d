"""Commands run in this process on scripted models."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from cygnet import cli
from cygnet.errors import ContextOverflow
from cygnet.generation.result import Generation, TokenLogprob, Usage
from cygnet.models import load as loading
from cygnet.models.encoder import Embeddings


class Pieces:
    """A stream of text pieces that can be closed."""

    def __init__(self, pieces):
        self._pieces = iter(pieces)
        self.closed = False

    def __iter__(self):
        return self._pieces

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.closed = True


class CausalLM:
    """Answers every prompt with its words reversed."""

    max_context = 100

    def __init__(self):
        self.calls = []
        self.closed = False
        self.interrupt_after = None

    def _words(self, text):
        return [" " + word for word in reversed(text.split())]

    def generate(self, prompts, logprobs=None, **options):
        self.calls.append(("generate", prompts, options))
        out = []
        for prompt in prompts:
            words = self._words(prompt)
            detail = [TokenLogprob(i, -0.5, ((i, -0.5),), f"t{i}", (f"t{i}",)) for i in range(len(words))] if logprobs is not None else None
            out.append(Generation(list(range(len(words))), "".join(words), "stop", Usage(3, len(words)), detail))
        return out

    def stream(self, prompt, **options):
        self.calls.append(("stream", prompt, options))
        return Pieces(self._words(prompt))

    def chat_stream(self, messages, **options):
        self.calls.append(("chat", [dict(m) for m in messages], options))
        if "too long" in messages[-1]["content"]:
            raise ContextOverflow("the prompt has 101 tokens, the model's context is 100: shorten it")

        def pieces():
            for i, word in enumerate(self._words(messages[-1]["content"])):
                if i == self.interrupt_after:
                    raise KeyboardInterrupt
                yield word

        return Pieces(pieces())

    def chat(self, messages, **options):
        return self.generate([messages[-1]["content"]], **options)[0]

    def encode_text(self, text):
        return list(range(len(text.split())))

    def score(self, text):
        logprobs = np.full(max(len(text.split()) - 1, 0), -0.25, np.float32)
        return SimpleNamespace(logprobs=logprobs, perplexity=float(np.exp(0.25)))

    tokenizer = SimpleNamespace(id_to_token=lambda token: f"t{token}")

    def close(self):
        self.closed = True


class Encoder:
    """Vectors of (length, number of words)."""

    dimension = 2
    max_length = 5

    def __init__(self):
        self.options = None

    def embed(self, texts, report=False, progress=None, **options):
        self.options = options
        if progress:
            progress(len(texts))
        vectors = np.array([[len(text), len(text.split())] for text in texts], np.float32)
        return Embeddings(vectors, [len(text.split()) for text in texts], [i for i, text in enumerate(texts) if len(text.split()) > 5])

    def close(self):
        pass


@pytest.fixture
def model(monkeypatch):
    """model(kind): the scripted model that every command of this test loads; .loaded tells with which arguments."""
    state = SimpleNamespace(loaded=None)

    def use(kind=CausalLM):
        instance = kind()

        def load(source, **options):
            state.loaded = (source, options)
            return instance

        monkeypatch.setattr(loading, "load", load)
        instance.state = state
        return instance

    use.CausalLM, use.Encoder = CausalLM, Encoder
    return use


@pytest.fixture
def run(monkeypatch, capfd, tmp_path):
    """run(*arguments, stdin=None): (status, standard output, standard error)."""

    def call(*arguments, stdin=""):
        source = tmp_path / "stdin"
        source.write_bytes(stdin if isinstance(stdin, bytes) else stdin.encode())
        with open(source) as file:
            monkeypatch.setattr(sys, "stdin", file)
            try:
                status = cli.main(list(arguments))
            except SystemExit as exit:
                status = exit.code or 0
        out, err = capfd.readouterr()
        return status, out, err

    return call
