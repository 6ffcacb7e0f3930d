"""Texts to vectors: order, batches, limits, what a model's folder says, empty input."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cygnet.architectures.spec import HeadSpec, Pool
from cygnet.errors import ContextOverflow, FormatError, ModelClosed, NumericError, OptionError, TokenizerError, UnsupportedModel, WeightsError
from cygnet.formats.safetensors import write_safetensors
from cygnet.models import text_model
from cygnet.models.encoder import Encoder


def write(folder, name, content):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content))


def describe(folder, *modules, **pooling):
    """Writes modules.json with a Transformer, a Pooling module, and what is asked for behind it."""
    write(folder, "modules.json", [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
                                   for i, (kind, path) in enumerate([("Transformer", ""), ("Pooling", "1_Pooling"), *modules])])  # fmt: skip
    write(folder, "1_Pooling/config.json", pooling)


def words(n, start=0):
    return " ".join(chr(ord("a") + (start + i) % 26) for i in range(n))


def states(model, text):
    return model.hidden_states(text)


def test_default_is_the_unit_mean(parts):
    model = Encoder(parts())
    vector = states(model, "a b c").mean(axis=0)
    np.testing.assert_allclose(model.embed("a b c"), [vector / np.linalg.norm(vector)], rtol=1e-5)
    assert not model.settings.described


@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "lasttoken", "mean_sqrt_len", "weightedmean"])
def test_pooling_of_the_folder(parts, pooling):
    plain = parts()
    flag = {"cls": "cls_token", "lasttoken": "lasttoken"}.get(pooling, pooling + "_tokens")
    describe(plain.source, **{"pooling_mode_" + flag: True})
    model = Encoder(plain)
    assert model.settings.pooling == (pooling,)
    rows = states(model, "a b c")
    expected = {
        "cls": rows[0],
        "mean": rows.mean(axis=0),
        "max": rows.max(axis=0),
        "lasttoken": rows[-1],
        "mean_sqrt_len": rows.sum(axis=0) / np.sqrt(len(rows)),
        "weightedmean": (rows * np.arange(1, 6)[:, None]).sum(axis=0) / 15,
    }[pooling]
    np.testing.assert_allclose(model.embed(["a b c"]), [expected], rtol=1e-5, atol=1e-6)
    assert abs(np.linalg.norm(model.embed("a b c")) - 1) > 1e-3
    np.testing.assert_allclose(np.linalg.norm(model.embed("a b c", normalize=True)), 1, rtol=1e-6)


def test_normalize_module(parts):
    plain = parts()
    describe(plain.source, ("Normalize", "2_Normalize"), pooling_mode_cls_token=True)
    model = Encoder(plain)
    first = states(model, "x")[0]
    np.testing.assert_allclose(model.embed("x"), [first / np.linalg.norm(first)], rtol=1e-5)
    np.testing.assert_allclose(model.embed("x", normalize=False), [first], rtol=1e-6)


@pytest.mark.parametrize("activation, function", [("Tanh", np.tanh), ("Identity", lambda x: x)])
def test_dense_module(parts, activation, function):
    plain = parts()
    describe(plain.source, ("Dense", "2_Dense"), pooling_mode="mean")
    weight = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    bias = np.array([1, 2, 3], np.float32)
    write(plain.source, "2_Dense/config.json", {"in_features": 8, "out_features": 3, "bias": True, "activation_function": f"torch.nn.{activation}"})
    write_safetensors(plain.source / "2_Dense/model.safetensors", {"linear.weight": weight, "linear.bias": bias})
    model = Encoder(plain)
    assert model.dimension == 3
    np.testing.assert_allclose(model.embed("a b"), [function(weight @ states(model, "a b").mean(axis=0) + bias)], rtol=1e-4, atol=1e-5)
    assert model.embed([]).shape == (0, 3)


def test_dense_without_its_bias(parts):
    plain = parts()
    describe(plain.source, ("Dense", "2_Dense"), pooling_mode="mean")
    write(plain.source, "2_Dense/config.json", {"bias": True})
    write_safetensors(plain.source / "2_Dense/model.safetensors", {"linear.weight": np.eye(8, dtype=np.float32)})
    with pytest.raises(WeightsError, match="linear.bias"):
        Encoder(plain)


@pytest.mark.parametrize(
    "modules, error, message",
    [
        ([{"type": "x.models.LSTM", "path": ""}], UnsupportedModel, "LSTM"),
        ([{"path": ""}], FormatError, "no module"),
        ([{"type": "x.Pooling", "path": "../up"}], FormatError, "leads out"),
        ([{"type": "x.Pooling", "path": "/etc"}], FormatError, "leads out"),
        ([{"type": "x.Transformer", "path": ""}], UnsupportedModel, "no Pooling"),
        ({"not": "a list"}, FormatError, "wanted"),
    ],
)
def test_modules_that_are_not_known(parts, modules, error, message):
    plain = parts()
    write(plain.source, "modules.json", modules)
    with pytest.raises(error, match=message):
        Encoder(plain)


def test_unknown_pooling_flag_set(parts):
    plain = parts()
    describe(plain.source)
    with pytest.raises(UnsupportedModel, match="1_Pooling"):
        Encoder(plain)


@pytest.mark.parametrize("limit", [1, 7, 64, 10**6])
def test_same_vectors_in_any_batch_and_order(parts, monkeypatch, limit):
    monkeypatch.setattr(text_model, "BATCH_TOKENS", limit)
    model = Encoder(parts(max_context=600))
    texts = [words(n, n) for n in np.random.default_rng(3).permutation(60)] + ["a b", "a b"]
    alone = np.concatenate([model.embed(text) for text in texts])
    np.testing.assert_array_equal(model.embed(texts), alone)
    np.testing.assert_array_equal(alone[-1], alone[-2])
    assert all(sum(batch) <= limit or len(batch) == 1 for batch in model.engine.batches)


def test_generator_of_texts(parts):
    model = Encoder(parts())
    texts = [words(1 + i % 5, i) for i in range(2500)]
    np.testing.assert_array_equal(model.embed(text for text in texts), model.embed(texts))


def test_progress_counts_texts(parts):
    seen = []
    Encoder(parts()).embed(["a"] * 1500, progress=seen.append)
    assert seen == sorted(set(seen)) and len(seen) > 2 and seen[-1] == 1500


def test_length_limit_of_the_folder(parts):
    plain = parts(max_context=32)
    write(plain.source, "sentence_bert_config.json", {"max_seq_length": 10})
    model = Encoder(plain)
    assert model.max_length == 10
    np.testing.assert_array_equal(model.embed(words(40)), model.embed(words(8)))
    found = model.embed(["a", words(40)], report=True)
    assert found.truncated == [1] and found.token_counts == [3, 10]
    with pytest.raises(ContextOverflow, match="text 1 has 42 tokens, the limit is 10"):
        model.embed(["a", words(40)], truncate=False)
    model.max_length = 32
    np.testing.assert_array_equal(model.embed(words(40)), model.embed(words(30)))
    assert (model.embed(words(20)) != model.embed(words(8))).any()
    with pytest.raises(OptionError, match="1 to 32"):
        model.max_length = 33
    with pytest.raises(OptionError, match="1 to 32"):
        model.embed("a", max_length=99)


def test_truncated_indices_count_over_windows(parts):
    found = Encoder(parts(max_context=5)).embed((words(9) if i == 1100 else "a" for i in range(1200)), report=True)
    assert found.truncated == [1100] and len(found.token_counts) == 1200


def test_empty_input(parts):
    model = Encoder(parts())
    assert model.embed([]).shape == (0, 8) and model.embed([]).dtype == np.float32
    vectors = model.embed(["a b", "", "  ", "c"])
    np.testing.assert_array_equal(vectors[1], vectors[2])
    np.testing.assert_array_equal(vectors[[0, 3]], model.embed(["a b", "c"]))
    np.testing.assert_array_equal(model.embed([[], [5]])[0], np.zeros(8))


def test_token_ids_in_place_of_text(parts):
    model = Encoder(parts())
    ids = model.tokenizer.encode("a b").ids
    np.testing.assert_array_equal(model.embed([ids]), model.embed("a b"))
    np.testing.assert_array_equal(model.embed(ids), model.embed("a b"))
    np.testing.assert_array_equal(model.embed(np.array(ids)), model.embed("a b"))


@pytest.mark.parametrize("texts", [None, 3, [None], ["a", 3], b"a", [b"a"], {"a": 1}, [["a"]], [[0.5]]])
def test_not_texts(parts, texts):
    with pytest.raises(OptionError):
        Encoder(parts()).embed(texts)


@pytest.mark.parametrize("ids", [[31], [-1]])
def test_ids_outside_of_the_vocabulary(parts, ids):
    with pytest.raises(OptionError, match="outside of the vocabulary of 31"):
        Encoder(parts()).embed([ids])


def test_unknown_pooling_argument(parts):
    with pytest.raises(OptionError, match="median"):
        Encoder(parts()).embed("a", pooling="median")


def test_without_tokenizer(parts):
    model = Encoder(parts(with_tokenizer=False))
    assert model.embed([[5, 6]]).shape == (1, 8)
    with pytest.raises(TokenizerError, match="token ids instead"):
        model.embed("a")


def test_prompts(parts):
    plain = parts()
    write(plain.source, "config_sentence_transformers.json", {"prompts": {"query": "q u ", "document": "d "}, "default_prompt_name": "document"})
    model = Encoder(plain)
    np.testing.assert_array_equal(model.embed("a"), model.embed("d a", prompt=""))
    np.testing.assert_array_equal(model.embed("a", prompt_name="query"), model.embed("q u a", prompt=""))
    np.testing.assert_array_equal(model.embed("a", prompt="z "), model.embed("z a", prompt=""))
    with pytest.raises(OptionError, match="no prompt named 'other'; this model has query, document"):
        model.embed("a", prompt_name="other")
    with pytest.raises(OptionError, match="exclude"):
        model.embed("a", prompt="x", prompt_name="query")


def test_prompt_left_out_of_pooling(parts):
    plain = parts()
    describe(plain.source, pooling_mode="mean", include_prompt=False)
    model = Encoder(plain)
    np.testing.assert_allclose(model.embed("a b", prompt="q u "), [states(model, "q u a b")[3:].mean(axis=0)], rtol=1e-5)


def test_lower_case_of_the_folder(parts):
    plain = parts()
    write(plain.source, "sentence_bert_config.json", {"max_seq_length": None, "do_lower_case": True})
    model = Encoder(plain)
    np.testing.assert_array_equal(model.embed("A B"), model.embed("a b"))


def test_forward_takes_ids_as_they_are(parts):
    model = Encoder(parts(max_context=4))
    assert model.forward([5, 6, 7]).shape == (3, 8)
    several = model.forward([[5, 6], [7]], type_ids=[[0, 1], [0]])
    np.testing.assert_allclose(several[0][1] - model.forward([5, 6])[1], 1, rtol=1e-5)
    assert [s.shape for s in model.forward([[], [7]])] == [(0, 8), (1, 8)]
    with pytest.raises(ContextOverflow, match="sequence 1 has 5 tokens, the model's context is 4"):
        model.forward([[5], [5] * 5])


@pytest.mark.parametrize("types", [[0.7, 0.2], ["0", "1"], [0], [[0], [1]], [[0], [0, 1]], 5, np.array(5), np.zeros(2)])
def test_types_are_a_whole_number_for_each_id(parts, types):
    with pytest.raises(OptionError, match="type_ids must have one type"):
        Encoder(parts()).forward([5, 6], type_ids=types)
    with pytest.raises(OptionError, match="type_ids must have one type|lists"):
        Encoder(parts()).forward([[5, 6]], type_ids=types)


def test_the_length_limit_is_shown(parts):
    assert repr(Encoder(parts())).endswith("context 32>")
    model = Encoder(parts())
    model.max_length = 9
    assert repr(model).endswith("context 32, texts up to 9 tokens>")


def test_similarity(parts):
    scores = Encoder(parts()).similarity(["a b", "c"], ["a b", "c", "d"])
    assert scores.shape == (2, 3)
    np.testing.assert_allclose([scores[0, 0], scores[1, 1]], 1, rtol=1e-5)


def test_closing(parts):
    with Encoder(parts()) as model:
        assert "Encoder test" in repr(model)
    for texts in ("a", []):
        with pytest.raises(ModelClosed, match="is closed"):
            model.embed(texts)


def test_types_must_fit(parts):
    with pytest.raises(OptionError, match="one type for each token"):
        Encoder(parts()).forward([5, 6], type_ids=[0])


def test_pooler(parts):
    plain = parts()
    with pytest.raises(OptionError, match="has no pooler"):
        Encoder(plain).pooled([5])
    plain = replace(plain, spec=replace(plain.spec, pooler=HeadSpec(Pool.FIRST, ())))
    model = Encoder(plain)
    np.testing.assert_array_equal(model.pooled([5, 6]), np.tanh(model.forward([5, 6])[0]))
    assert [v.shape for v in model.pooled([[5], [6, 7]])] == [(8,), (8,)]
    with pytest.raises(OptionError, match="without tokens"):
        model.pooled([[5], []])


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_damaged_weights_give_no_vector(parts, wrong):
    model = Encoder(parts())
    model.engine.table[model.tokenizer.token_to_id("a"), 3] = wrong
    assert np.isfinite(model.embed("b")).all()
    with pytest.raises(NumericError, match="vectors are not all finite"):
        model.embed(["b", "a"])


@pytest.mark.parametrize("wrong", [{"prompt": 3}, {"prompt_name": 3}, {"normalize": "yes"}, {"truncate": "yes"}, {"report": 1}, {"progress": True}])
def test_options_that_can_only_be_mistakes(parts, wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        Encoder(parts()).embed("a", **wrong)


def test_forward_takes_ids_only(parts):
    for wrong in (None, "a", 3, {1: 2}):
        with pytest.raises(OptionError, match="token ids are wanted"):
            Encoder(parts()).forward(wrong)
