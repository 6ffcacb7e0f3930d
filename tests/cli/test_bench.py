"""`cygnet bench` and `cygnet convert` on small models."""

import io
import json
import re

import pytest

from cygnet.cli.output import print_bars


@pytest.mark.parametrize("name, field", [("llama-b", "decode_tokens_per_second"), ("bert-base", "texts_per_second")])
def test_bench(run, conformance, name, field):
    sizes = ["--prompt-tokens", "8", "--new-tokens", "4", "--batch", "2", "--texts", "4", "--text-tokens", "6", "--runs", "1"]
    status, out, _ = run("bench", "-m", str(conformance / "models" / name), *sizes, "--profile", "--json")
    found = json.loads(out)
    assert status == 0 and found[field] > 0 and sum(found["profile"].values()) > 0
    status, out, _ = run("bench", "-m", str(conformance / "models" / name), *sizes, "--profile")
    assert status == 0 and field in out and "stage" in out
    bars = out.strip().split("\n")[-len(found["profile"]) :]
    assert all(any(line.startswith(f"{name} ") for line in bars) for name in found["profile"]) and "█" * 50 in bars[0]


def test_bars(capsys, monkeypatch):
    print_bars({"attention": 3.0, "norm": 0.5, "idle": 0.0}, width=12)
    assert capsys.readouterr().out == f"attention  {'█' * 12} 86%\nnorm       ██ 14%\nidle        0%\n"
    print_bars({"a": 8.0, "b": 1.0}, width=4)
    assert capsys.readouterr().out == "a  ████ 89%\nb  ▌ 11%\n"
    print_bars({"nothing": 0.0})
    assert capsys.readouterr().out == "nothing   0%\n"
    ascii_only = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr("sys.stdout", ascii_only)
    print_bars({"a": 2.0, "b": 1.0}, width=4)
    ascii_only.flush()
    assert ascii_only.buffer.getvalue() == b"a  #### 67%\nb  ## 33%\n"


def test_bench_refuses(run, conformance):
    status, _, err = run("bench", "-m", str(conformance / "models" / "gpt2-a"), "--prompt-tokens", "100000")
    assert status == 2 and "the context is" in err
    assert run("bench", "--runs", "0")[0] == 2


def test_convert(run, conformance, tmp_path):
    source, target = str(conformance / "models" / "llama-b"), str(tmp_path / "out")
    status, out, _ = run("convert", source, target, "--weights", "int8")
    assert status == 0 and out.startswith(f"{target}: ")
    assert len(out.splitlines()) == 1
    status, _, err = run("convert", source, target, "--weights", "int8")
    assert status == 2 and err == f"cygnet convert: {target} is there already: name a new one\n"
    assert run("convert", source, target)[0] == 2


def test_convert_tells_what_stays_wide(run, conformance, tmp_path):
    _, out, _ = run("convert", str(conformance / "models" / "gpt2-b-bin"), str(tmp_path / "out"), "--weights", "int4")
    assert re.search(r"^\d+ of \d+ matrices stay at 16 bits, not int4: they are stored transposed", out.splitlines()[-1])
    assert len(run("convert", str(conformance / "models" / "gpt2-b-bin"), str(tmp_path / "wide"), "--weights", "float16")[1].splitlines()) == 1
