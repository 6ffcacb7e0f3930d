"""Looking inside small models: states and attention weights, equal to what the engine makes of them."""

import numpy as np
import pytest

import cygnet
from cygnet.errors import ContextOverflow, ModelClosed, OptionError

IDS = [3, 9, 4, 7]


@pytest.fixture
def load(conformance):
    return lambda name: cygnet.load(conformance / "models" / name, weights="float32")


def check_maps(maps, rows, columns):
    for weights in maps:
        assert weights.shape[1:] == (rows, columns)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)


def test_encoder(load):
    with load("bert-base") as model:
        found = model.inspect(IDS)
        layers = len(model.spec.encoder.layers)
        assert len(found.states) == layers + 1 and len(found.attention) == layers and found.ids == IDS
        check_maps(found.attention, 4, 4)
        np.testing.assert_allclose(found.hidden, model.forward(IDS), atol=1e-5)
        assert len(found.nearest()) == 4 and found.encoder is None


def test_decoder_sees_only_what_came_before(load):
    with load("llama-a") as model:
        found = model.inspect(IDS)
        check_maps(found.attention, 4, 4)
        assert all((np.triu(weights, 1) == 0).all() for weights in found.attention)
        np.testing.assert_allclose(found.logits, model.forward(IDS), atol=1e-4)


def test_encoder_and_decoder(load):
    with load("t5-a") as model:
        found = model.inspect(IDS, decoder=[5, 6])
        check_maps(found.attention, 3, 3)
        check_maps(found.cross, 3, 4)
        check_maps(found.encoder.attention, 4, 4)
        assert found.ids == [model.spec.tokens.decoder_start, 5, 6]
        np.testing.assert_allclose(found.logits, model.forward(IDS, found.ids), atol=1e-4)


def test_what_cannot_be_looked_at(load):
    with load("llama-a") as model:
        with pytest.raises(OptionError, match="no tokens"):
            model.inspect([])
        with pytest.raises(ContextOverflow):
            model.inspect([3] * (model.max_context + 1))
    with pytest.raises(ModelClosed, match="closed"):
        model.inspect(IDS)
    with load("vit-cls") as model, pytest.raises(OptionError, match="reads images"):
        model.inspect(IDS)
