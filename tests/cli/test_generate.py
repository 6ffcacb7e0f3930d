"""`cygnet generate` and `cygnet score`."""

import json


def test_streams_the_continuation(run, model):
    instance = model()
    assert run("generate", "-m", "m", "a b c") == (0, " c b a\n", "")
    assert instance.calls == [("stream", "a b c", {})]


def test_options_reach_the_model(run, model):
    instance = model()
    sampling = "--temperature 0.5 --top-k 3 --top-p 0.9 --min-p 0.1 --repetition-penalty 1.1 --seed 7"
    run(*f"generate -m m -n 5 {sampling} --stop x --stop y --num-beams 2 a".split())
    assert instance.calls[0][2] == {
        "max_new_tokens": 5, "temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.1, "seed": 7, "num_beams": 2,
        "stop": ["x", "y"],
    }  # fmt: skip


def test_zero_is_an_option(run, model):
    instance = model()
    run("generate", "-m", "m", "--temperature", "0", "-n", "0", "a")
    assert instance.calls[0][2] == {"max_new_tokens": 0, "temperature": 0.0}


def test_standard_input_and_file(run, model, tmp_path):
    model()
    assert run("generate", "-m", "m", stdin="a b\n")[1] == " b a\n"
    assert run("generate", "-m", "m", "--file", "-", stdin="a b")[1] == " b a\n"
    (tmp_path / "prompt").write_text("x y")
    assert run("generate", "-m", "m", "--file", str(tmp_path / "prompt"))[1] == " y x\n"


def test_penalties_forms_and_cutting_reach_the_model(run, model, tmp_path):
    instance = model()
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    (tmp_path / "grammar").write_text('start: "a"')
    run("generate", "-m", "m", "--presence-penalty", "0.5", "--frequency-penalty", "1", "--json-schema", str(tmp_path / "schema.json"), "a")
    run("generate", "-m", "m", "--json-schema", "true", "--speculation", "prompt-lookup", "--truncate", "a")
    run("generate", "-m", "m", "--grammar", str(tmp_path / "grammar"), "a")
    run("generate", "-m", "m", "--regex", "[a-z]+", "a")
    assert [options for _, _, options in instance.calls] == [
        {"presence_penalty": 0.5, "frequency_penalty": 1.0, "json_schema": {"type": "object"}},
        {"json_schema": True, "speculation": "prompt-lookup", "truncate": True},
        {"grammar": 'start: "a"'},
        {"regex": "[a-z]+"},
    ]
    assert "no JSON" in run("generate", "-m", "m", "--json-schema", "{", "a")[2]
    assert "--logprobs needs --json" in run("generate", "-m", "m", "--logprobs", "1", "a")[2]


def test_several_prompts_are_told_apart(run, model):
    instance = model()
    assert run("generate", "-m", "m", "a b", "c d")[1] == "==> a b <==\n b a\n\n==> c d <==\n d c\n"
    assert run("generate", "-m", "m", "--num-return-sequences", "2", "a b")[1] == "==> a b <==\n b a\n"
    assert instance.calls[-1][2] == {"num_return_sequences": 2}


def test_echo_and_several_prompts(run, model):
    model()
    assert run("generate", "-m", "m", "--echo", "a b", "c d")[1] == "a b b a\nc d d c\n"


def test_json(run, model):
    model()
    _, out, _ = run("generate", "-m", "m", "--json", "--logprobs", "1", "a é", "c")
    first, second = map(json.loads, out.splitlines())
    assert first["text"] == " é a" and "é" in out
    assert first["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "cached_tokens": 0}
    assert first["logprobs"][0] == {"id": 0, "token": "t0", "logprob": -0.5, "top": [{"id": 0, "token": "t0", "logprob": -0.5}]}
    assert second["prompt"] == "c" and second["finish_reason"] == "stop"


def test_a_text_of_one_token_has_no_score(run, model):
    model()
    status, out, err = run("score", "-m", "m", "one")
    assert (status, out) == (2, "") and "there is nothing to score in 'one'" in err


def test_score(run, model):
    model()
    assert run("score", "-m", "m", "a b c")[1] == "perplexity 1.2840, 2 tokens, mean log-probability -0.2500\n"
    assert "t1" in run("score", "-m", "m", "--tokens", "a b c")[1]
    assert json.loads(run("score", "-m", "m", "--json", "a b")[1])["tokens"] == ["t1"]
