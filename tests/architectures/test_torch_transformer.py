"""The original Transformer from a plain state dict: renamed parts, shared embeddings, a tied generator."""

import numpy as np
import pytest
from small import tensors

from cygnet.architectures.registry import resolve
from cygnet.errors import WeightsError
from cygnet.reference.model import ReferenceModel

CONFIG = dict(model_type="torch_transformer", src_vocab_size=11, tgt_vocab_size=11, d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1)
CONFIG |= dict(dim_feedforward=12, activation="relu", norm_first=False, layer_norm_eps=1e-5, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def layer(norms, attentions):
    """Shapes of one layer."""
    shapes = {"linear1.weight": (12, 8), "linear1.bias": (12,), "linear2.weight": (8, 12), "linear2.bias": (8,)}
    for name in attentions:
        shapes |= {f"{name}.in_proj_weight": (24, 8), f"{name}.in_proj_bias": (24,), f"{name}.out_proj.weight": (8, 8), f"{name}.out_proj.bias": (8,)}
    for index in range(1, norms + 1):
        shapes |= {f"norm{index}.weight": (8,), f"norm{index}.bias": (8,)}
    return shapes


def state(final_norms=True):
    """A state dict, by name."""
    shapes = {"src_embed.weight": (11, 8), "tgt_embed.weight": (11, 8), "generator.weight": (11, 8), "generator.bias": (11,)}
    for stack, parts in (("encoder", layer(2, ["self_attn"])), ("decoder", layer(3, ["self_attn", "multihead_attn"]))):
        shapes |= {f"transformer.{stack}.layers.0.{name}": shape for name, shape in parts.items()}
        if final_norms:
            shapes |= {f"transformer.{stack}.norm.{part}": (8,) for part in ("weight", "bias")}
    return tensors(shapes)


def logits(weights, **config):
    loaded = resolve({**CONFIG, **config}, weights)
    return ReferenceModel(loaded.spec, loaded.weights).forward([[3, 4, 5]], decoder_ids=[[1, 6]])[0].logits


def test_parts_may_have_other_names():
    renamed = {"src_embed": "source.embedding", "tgt_embed": "target.embedding", "transformer": "core", "generator": "project"}
    weights = {f"{renamed[name.partition('.')[0]]}.{name.partition('.')[2]}": value for name, value in state().items()}
    assert np.array_equal(logits(weights, keys=renamed), logits(state()))
    with pytest.raises(WeightsError, match="src_embed.weight"):
        logits(weights)


def test_shared_embedding_is_a_copy_that_is_not_there():
    weights = state()
    weights["tgt_embed.weight"] = weights["src_embed.weight"]
    want = logits(weights)
    del weights["tgt_embed.weight"]
    assert np.array_equal(logits(weights), want)


def test_generator_without_weight_is_the_target_embedding():
    weights = state()
    weights["generator.weight"] = weights["tgt_embed.weight"]
    want = logits(weights)
    del weights["generator.weight"]
    assert np.array_equal(logits(weights), want)


def test_final_norms_count_where_they_are():
    spec = resolve(CONFIG, state(final_norms=False)).spec
    assert spec.encoder.final_norm is None and spec.decoder.final_norm is None
    assert resolve(CONFIG, state()).spec.encoder.final_norm.eps == 1e-5


def test_embeddings_are_scaled_and_decoding_starts_with_bos():
    spec = resolve(CONFIG, state()).spec
    assert spec.encoder.embedding.scale == spec.decoder.embedding.scale == 8**0.5
    assert (spec.tokens.decoder_start, spec.tokens.eos) == (1, (2,))


def test_positions_are_sines_and_cosines_by_turns():
    table = resolve(CONFIG, state()).weights["encoder.embed.position.weight"].to_float32(slice(0, 3))
    assert table.shape == (3, 8)
    assert np.allclose(table[0], [0, 1] * 4)
    assert np.allclose(table[1, :4], [np.sin(1), np.cos(1), np.sin(0.1), np.cos(0.1)])
    assert np.allclose(table[2, :2], [np.sin(2), np.cos(2)])
