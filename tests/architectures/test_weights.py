"""Strict loading: names, prefixes, old spellings, buffers, tied heads, and errors that list everything at once."""

import logging

import numpy as np
import pytest
from small import BERT, LLAMA, bert_shapes, llama_tensors, tensor, tensors

from cygnet.architectures.registry import resolve
from cygnet.architectures.spec import Task
from cygnet.architectures.weights import Source, bare_name
from cygnet.errors import WeightsError
from cygnet.formats.tensor import Tensor
from cygnet.reference.model import ReferenceModel

IDS = [1, 5, 3, 7]


def logits(config, weights, **options):
    loaded = resolve(config, weights, **options)
    output = ReferenceModel(loaded.spec, loaded.weights).forward([IDS])[0]
    return output.hidden if output.logits is None else output.logits


def test_missing_unused_and_misshapen_are_listed_together():
    weights = llama_tensors()
    del weights["model.layers.1.mlp.up_proj.weight"], weights["model.norm.weight"]
    weights["model.layers.0.self_attn.k_proj.weight"] = tensor("model.layers.0.self_attn.k_proj.weight", np.zeros((8, 8)))
    weights["model.layers.7.strange.weight"] = tensor("model.layers.7.strange.weight", np.zeros(3))
    with pytest.raises(WeightsError) as caught:
        resolve(LLAMA, weights)
    message = str(caught.value)
    for part in (
        "missing (2): layers.1.mlp.up_proj.weight; norm.weight",
        "wrong shape (1): model.layers.0.self_attn.k_proj.weight has shape [8, 8], expected [4, 8]",
        "not used by the model (1): model.layers.7.strange.weight",
    ):
        assert part in message


def test_bias_that_the_settings_ask_for_is_missed():
    with pytest.raises(WeightsError, match="self_attn.q_proj.bias"):
        resolve({**LLAMA, "attention_bias": True}, llama_tensors())


def test_bias_that_the_settings_do_not_know_is_unused():
    weights = llama_tensors()
    weights["model.layers.0.mlp.up_proj.bias"] = tensor("model.layers.0.mlp.up_proj.bias", np.ones(12))
    with pytest.raises(WeightsError, match="not used by the model.*up_proj.bias"):
        resolve(LLAMA, weights)


def test_same_numbers_with_and_without_prefix():
    want = logits(LLAMA, llama_tensors())
    assert np.array_equal(logits(LLAMA, llama_tensors(prefix="")), want)
    wrapped = {f"module.{name}": value for name, value in llama_tensors().items()}
    assert np.array_equal(logits(LLAMA, wrapped), want)


def test_encoder_with_and_without_prefix_and_with_a_head():
    shapes = bert_shapes()
    want = logits(BERT, tensors(shapes))
    bare = {name.removeprefix("bert."): value for name, value in tensors(shapes).items()}
    assert np.array_equal(logits(BERT, bare), want)
    with_head = {**tensors(shapes), **tensors({"classifier.weight": (3, 8), "classifier.bias": (3,)}, seed=9)}
    config = {**BERT, "architectures": ["BertForSequenceClassification"], "num_labels": 3}
    assert np.array_equal(logits(config, with_head, task=Task.ENCODER), want)
    assert logits(config, with_head).shape == (3,)


def test_whole_numbers_are_no_weights():
    stored = llama_tensors()
    name = "model.layers.1.mlp.up_proj.weight"
    stored[name] = Tensor(name, "I64", stored[name].shape, stored[name].raw)
    with pytest.raises(WeightsError, match=f"wrong type \\(1\\): {name} holds I64"):
        resolve(LLAMA, stored)


def test_the_same_name_twice_is_refused():
    weights = llama_tensors()
    weights["norm.weight"] = weights["model.norm.weight"]
    with pytest.raises(WeightsError, match="'norm.weight' twice: as 'model.norm.weight' and as 'norm.weight'"):
        resolve(LLAMA, weights)


def test_gamma_and_beta_of_norms_alone_are_renamed():
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): shape
        for name, shape in bert_shapes().items()
    }
    assert any(name.endswith("gamma") for name in old)
    assert np.array_equal(logits(BERT, tensors(old)), logits(BERT, tensors(bert_shapes())))
    assert bare_name("blocks.0.layer_scale.gamma", ()) == "blocks.0.layer_scale.gamma"
    assert bare_name("blocks.0.gamma", ()) == "blocks.0.gamma"
    assert bare_name("blocks.0.normalizer_scale.gamma", ()) == "blocks.0.normalizer_scale.gamma"


def test_buffers_are_left_aside():
    weights = llama_tensors()
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = tensor("inv_freq", np.ones(2))
    assert np.array_equal(logits(LLAMA, weights), logits(LLAMA, llama_tensors()))
    bert = tensors(bert_shapes())
    bert["bert.embeddings.position_ids"] = tensor("position_ids", np.arange(16)[None])
    assert np.array_equal(logits(BERT, bert), logits(BERT, tensors(bert_shapes())))


def test_gpt2_masks_are_left_aside_and_biases_are_not():
    d = 8
    config = dict(model_type="gpt2", architectures=["GPT2LMHeadModel"], vocab_size=11, n_embd=d, n_layer=1, n_head=2, n_positions=16)
    modules = {"ln_1": (d,), "attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d), "ln_2": (d,), "mlp.c_fc": (d, 4 * d), "mlp.c_proj": (4 * d, d)}
    shapes = {"wte.weight": (11, d), "wpe.weight": (16, d), "ln_f.weight": (d,), "ln_f.bias": (d,)}
    for name, shape in modules.items():
        shapes |= {f"h.0.{name}.weight": shape, f"h.0.{name}.bias": shape[-1:]}
    want = logits(config, tensors(shapes))
    weights = tensors(shapes)
    weights["h.0.attn.bias"] = tensor("h.0.attn.bias", np.tril(np.ones((16, 16)))[None, None])
    weights["h.0.attn.masked_bias"] = tensor("h.0.attn.masked_bias", np.array(-1e4))
    assert np.array_equal(logits(config, weights), want)
    assert np.array_equal(logits(config, {f"transformer.{name}": value for name, value in weights.items()}), want)
    del weights["h.0.attn.c_attn.bias"]
    with pytest.raises(WeightsError, match="h.0.attn.c_attn.bias"):
        resolve(config, weights)


class TestTiedHead:
    """What happens to the output layer: the file decides, nothing is made up."""

    def test_tied_and_absent(self):
        loaded = resolve({**LLAMA, "tie_word_embeddings": True}, llama_tensors(head=False))
        assert loaded.spec.head.steps[0].tied and "head.logits.weight" not in loaded.weights

    def test_tied_and_stored_again(self, caplog):
        weights = llama_tensors(head=False)
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
        assert resolve({**LLAMA, "tie_word_embeddings": True}, weights).spec.head.steps[0].tied
        assert not caplog.records

    def test_tied_but_another_head_is_stored(self, caplog):
        with caplog.at_level(logging.WARNING, "cygnet"):
            loaded = resolve({**LLAMA, "tie_word_embeddings": True}, llama_tensors())
        assert not loaded.spec.head.steps[0].tied and "head.logits.weight" in loaded.weights
        assert "lm_head.weight" in caplog.text

    def test_untied_and_absent(self):
        with pytest.raises(WeightsError, match="missing.*lm_head.weight"):
            resolve({**LLAMA, "tie_word_embeddings": False}, llama_tensors(head=False))

    def test_untied_and_stored(self):
        loaded = resolve({**LLAMA, "tie_word_embeddings": False}, llama_tensors())
        assert np.array_equal(loaded.weights["head.logits.weight"].to_float32(), llama_tensors()["lm_head.weight"].to_float32())


def t5_shapes(embeddings):
    d, f, shapes = 8, 12, {name: (11, 8) for name in embeddings}
    for s, sublayers in (("encoder", ("SelfAttention", "DenseReluDense")), ("decoder", ("SelfAttention", "EncDecAttention", "DenseReluDense"))):
        for place, kind in enumerate(sublayers):
            at = f"{s}.block.0.layer.{place}."
            shapes[at + "layer_norm.weight"] = (d,)
            if kind == "DenseReluDense":
                shapes |= {f"{at}{kind}.wi.weight": (f, d), f"{at}{kind}.wo.weight": (d, f)}
            else:
                shapes |= {f"{at}{kind}.{part}.weight": (d, d) for part in "qkvo"}
        shapes |= {f"{s}.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (32, 2), f"{s}.final_layer_norm.weight": (d,)}
    return shapes


T5 = dict(model_type="t5", architectures=["T5ForConditionalGeneration"], vocab_size=11, d_model=8, d_ff=12, num_layers=1, num_heads=2, d_kv=4)


def test_t5_embedding_stored_three_times():
    once = resolve(T5, tensors(t5_shapes(["shared.weight"])))
    weights = tensors(t5_shapes(["shared.weight"]))
    for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"):
        weights[name] = weights["shared.weight"]
    again = resolve(T5, weights)
    assert again.spec == once.spec and again.spec.decoder.shared_embedding and again.spec.head.steps[0].tied


def test_t5_without_shared_embedding_reads_the_decoders():
    config = {**T5, "tie_word_embeddings": False}
    loaded = resolve(config, tensors(t5_shapes(["decoder.embed_tokens.weight", "lm_head.weight"])))
    embedding = tensors(t5_shapes(["decoder.embed_tokens.weight", "lm_head.weight"]))["decoder.embed_tokens.weight"]
    assert np.array_equal(loaded.weights["encoder.embed.token.weight"].to_float32(), embedding.to_float32())
    assert loaded.spec.head.hidden_scale == 1.0 and not loaded.spec.head.steps[0].tied


def test_source_compares_values_across_types():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    source = Source({"a": tensor("a", array), "b": tensor("b", array.copy()), "c": tensor("c", array + 1), "d": tensor("d", array[:1])})
    assert source.same("a", "b") and not source.same("a", "c") and not source.same("a", "d")
