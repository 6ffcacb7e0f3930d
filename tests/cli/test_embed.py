"""`cygnet embed`: input as lines and JSON lines, output as JSON lines and .npy."""

import json

import numpy as np


def test_lines_to_json_lines(run, model):
    model(model.Encoder)
    status, out, err = run("embed", "-m", "m", stdin="a b\n\nccc\r\n")
    assert (status, err) == (0, "")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"index": 0, "embedding": [3, 2]}, {"index": 1, "embedding": [0, 0]}, {"index": 2, "embedding": [3, 1]},
    ]  # fmt: skip


def test_npy(run, model, tmp_path):
    model(model.Encoder)
    path = tmp_path / "out.npy"
    assert run("embed", "-m", "m", "-o", str(path), stdin="".join(f"{'x' * i}\n" for i in range(2500)))[0] == 0
    vectors = np.load(path)
    assert vectors.dtype == np.float32 and vectors[:, 0].tolist() == list(range(2500))


def test_no_input_at_all(run, model, tmp_path):
    model(model.Encoder)
    assert run("embed", "-m", "m", stdin="") == (0, "", "")
    run("embed", "-m", "m", "-o", str(tmp_path / "out.npy"), stdin="")
    assert np.load(tmp_path / "out.npy").shape == (0, 2)


def test_json_lines_in_and_out(run, model, tmp_path):
    model(model.Encoder)
    (tmp_path / "in.jsonl").write_text('{"body": "a b"}\n"ccc"\n')
    assert run("embed", "-m", "m", "-f", str(tmp_path / "in.jsonl"), "--field", "body", "-o", str(tmp_path / "out.jsonl"))[0] == 0
    assert [json.loads(line)["embedding"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [[3, 2], [3, 1]]


def test_wrong_json_lines(run, model, tmp_path):
    model(model.Encoder)
    for line, message in [("{", "no JSON"), ('{"other": 1}', "no field 'text'"), ("3", "a text is wanted"), ('{"text": null}', "a text is wanted")]:
        path = tmp_path / "out.npy"
        status, _, err = run("embed", "-m", "m", "--jsonl", "-o", str(path), stdin='"ok"\n' + line)
        assert status == 2 and err.startswith("cygnet embed: standard input, line 2: ") and message in err
        assert not path.exists()


def test_options_and_cut_texts(run, model):
    instance = model(model.Encoder)
    _, _, err = run("embed", "-m", "m", "--prompt-name", "query", "--pooling", "cls", "--normalize", "--no-truncate", "a b c d e f", "a")
    assert instance.options == {"prompt": None, "prompt_name": "query", "pooling": "cls", "normalize": True, "truncate": False}
    assert err == "cygnet embed: 1 of 2 texts were cut to 5 tokens\n"


def test_numbers_are_exact(run, model):
    class Thirds(model.Encoder):
        pass

    Thirds.__name__ = "Encoder"
    Thirds.embed = lambda self, texts, **options: type("E", (), {"vectors": np.array([[1 / 3, 1e-30]], np.float32), "truncated": []})
    model(Thirds)
    numbers = json.loads(run("embed", "-m", "m", "a")[1])["embedding"]
    assert np.array_equal(np.array(numbers, np.float32), np.array([1 / 3, 1e-30], np.float32))
