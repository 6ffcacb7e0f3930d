"""The whole NumPy forward pass on its own: rows without anything to attend, positions, pooling, heads."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "architectures"))
from small import BERT, LLAMA, Anything, bert_shapes, llama_tensors, tensors  # noqa: E402

from cygnet.architectures.config import Config  # noqa: E402
from cygnet.architectures.inventory import inventory  # noqa: E402
from cygnet.architectures.registry import family_of, resolve, task_of  # noqa: E402
from cygnet.architectures.spec import Pool, PositionSpec, PositionTable  # noqa: E402
from cygnet.errors import OptionError  # noqa: E402
from cygnet.reference.model import ReferenceModel, position_rows  # noqa: E402


def random_model(**config):
    """A model of any config, with noise for weights."""
    family = family_of(config["model_type"])
    settings = Config(config, config["model_type"])
    spec = family.build(settings, Anything(), task_of(family, settings)).spec
    random = np.random.default_rng(0)
    return ReferenceModel(spec, {name: random.standard_normal(shape).astype(np.float32) * 0.5 for name, shape in inventory(spec).items()})


BART = dict(
    model_type="bart",
    vocab_size=20,
    d_model=8,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=8,
    decoder_ffn_dim=8,
    max_position_embeddings=16,
)


def test_empty_text_gives_no_rows():
    loaded = resolve(LLAMA, llama_tensors())
    outputs = ReferenceModel(loaded.spec, loaded.weights).forward([[], [1, 2]])
    assert outputs[0].logits.shape == (0, 11) and outputs[1].logits.shape == (2, 11)


def test_neighbours_do_not_change_a_row():
    loaded = resolve(BERT, tensors(bert_shapes()))
    model = ReferenceModel(loaded.spec, loaded.weights)
    alone = model.forward([[4, 5, 6]])[0].hidden
    assert np.array_equal(model.forward([[1], [4, 5, 6], [7] * 9])[1].hidden, alone)


def test_cross_attention_to_an_empty_source_is_finite():
    outputs = random_model(**BART).forward([[], [3, 4]], decoder_ids=[[2, 5], [2, 5]])
    assert all(np.isfinite(output.logits).all() for output in outputs)
    assert not np.array_equal(outputs[0].logits, outputs[1].logits)


def test_encoder_decoder_without_decoder_ids_gives_the_encoder_alone():
    output = random_model(**BART).forward([[3, 4]])[0]
    assert output.logits is None and output.encoder.hidden.shape == (2, 8)


def test_window_shorter_than_the_text():
    config = {**LLAMA, "model_type": "mistral", "architectures": ["MistralForCausalLM"], "num_hidden_layers": 1, "sliding_window": 2}
    model = random_model(**config)
    first, second = (model.forward([ids])[0].logits for ids in ([1, 2, 3, 4, 5], [9, 2, 3, 4, 5]))
    # Token i sees i - 1 and i: what stands first reaches two positions and no more.
    changed = np.abs(first - second).max(-1) > 1e-6
    assert changed.tolist() == [True, True, False, False, False]


def test_float64_is_carried_through():
    loaded = resolve(LLAMA, llama_tensors())
    exact = ReferenceModel(loaded.spec, loaded.weights, np.float64).forward([[1, 2, 3]])[0].logits
    plain = ReferenceModel(loaded.spec, loaded.weights).forward([[1, 2, 3]])[0].logits
    assert exact.dtype == np.float64 and plain.dtype == np.float32
    assert 0 < np.abs(exact - plain).max() < 1e-4


def test_positions_that_skip_padding():
    table = PositionSpec(PositionTable.LEARNED, 10, offset=2, padding_id=1, padding_row=1)
    assert position_rows(table, np.array([5, 1, 6, 1, 7])).tolist() == [2, 1, 3, 1, 4]
    assert position_rows(PositionSpec(PositionTable.LEARNED, 10, offset=2), np.array([5, 1])).tolist() == [2, 3]


def test_a_text_longer_than_the_table_is_refused():
    table = PositionSpec(PositionTable.LEARNED, 4, offset=2)
    assert position_rows(table, np.zeros(2)).tolist() == [2, 3]
    with pytest.raises(OptionError, match="3 tokens needs position 4, the table has 4 rows"):
        position_rows(table, np.zeros(3))


@pytest.mark.parametrize(("pool", "want"), [(Pool.FIRST, [0.0]), (Pool.LAST, [4.0]), (Pool.MEAN, [2.0])])
def test_pools(pool, want):
    from cygnet.reference.model import _pooled

    assert _pooled(pool, np.array([[0.0], [2.0], [4.0]])).tolist() == want


def test_experts_only_see_their_tokens():
    config = {**LLAMA, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 3, "num_experts_per_tok": 1}
    model = random_model(**config)
    router = model.tensors["decoder.0.ffn.router.weight"]
    router[:] = 0
    router[2] = 100 * np.sign(np.ones(8))
    x = np.abs(np.random.default_rng(1).standard_normal((4, 8))).astype(np.float32)
    ffn = model.spec.decoder.layers[0].ffn
    assert np.allclose(model._feed_forward(x, "decoder.0.ffn", ffn), model._expert(x, "decoder.0.ffn.experts.2", ffn))
