"""The same model in the spelling of PyTorch, Flax and Keras gives the same numbers."""

import numpy as np
import pytest
from small import BERT, bert_shapes, tensor, tensors

from cygnet.architectures.registry import resolve
from cygnet.architectures.spellings import flax_name, keras_name, turned
from cygnet.formats.weight_file import WeightFile
from cygnet.reference.model import ReferenceModel

GPT2 = dict(model_type="gpt2", architectures=["GPT2LMHeadModel"], vocab_size=11, n_embd=8, n_layer=1, n_head=2, n_positions=16)
GPT2_SHAPES = {
    **{"transformer.wte.weight": (11, 8), "transformer.wpe.weight": (16, 8)},
    **{f"transformer.{name}.{part}": (8,) for name in ("ln_f", "h.0.ln_1", "h.0.ln_2") for part in ("weight", "bias")},
    **{"transformer.h.0.attn.c_attn.weight": (8, 24), "transformer.h.0.attn.c_attn.bias": (24,)},
    **{"transformer.h.0.attn.c_proj.weight": (8, 8), "transformer.h.0.attn.c_proj.bias": (8,)},
    **{"transformer.h.0.mlp.c_fc.weight": (8, 32), "transformer.h.0.mlp.c_fc.bias": (32,)},
    **{"transformer.h.0.mlp.c_proj.weight": (32, 8), "transformer.h.0.mlp.c_proj.bias": (8,)},
}
VIT = dict(
    **dict(model_type="vit", architectures=["ViTModel"], hidden_size=8, intermediate_size=12, num_hidden_layers=0, num_attention_heads=2),
    **dict(image_size=4, patch_size=2, num_channels=3),
)
VIT_SHAPES = {
    **{"vit.embeddings.cls_token": (1, 1, 8), "vit.embeddings.position_embeddings": (1, 5, 8)},
    **{"vit.embeddings.patch_embeddings.projection.weight": (8, 3, 2, 2), "vit.embeddings.patch_embeddings.projection.bias": (8,)},
    **{"vit.layernorm.weight": (8,), "vit.layernorm.bias": (8,)},
}
MODELS = {"bert": (BERT, bert_shapes()), "gpt2": (GPT2, GPT2_SHAPES), "vit": (VIT, VIT_SHAPES)}


def as_flax(weights):
    result = {}
    for name, value in weights.items():
        module, _, part = name.rpartition(".")
        array, last = value.to_float32(), module.rpartition(".")[2]
        if part == "weight" and array.ndim == 1:
            name = f"{module}.scale"
        elif part == "weight" and last in ("word_embeddings", "position_embeddings", "token_type_embeddings", "wte", "wpe"):
            name = f"{module}.embedding"
        elif part == "weight":
            name, array = f"{module}.kernel", array.transpose((1, 0) if array.ndim == 2 else (2, 3, 1, 0))
        result[name] = tensor(name, array)
    return WeightFile("flax", [], result)


def as_keras(weights):
    result = {}
    for name, value in weights.items():
        module, _, part = name.rpartition(".")
        array, last = value.to_float32(), module.rpartition(".")[2]
        if array.ndim == 1 and any(mark in last for mark in ("LayerNorm", "layernorm", "ln_")):
            part = {"weight": "gamma", "bias": "beta"}[part]
        elif part == "weight" and "embeddings" not in last and last not in ("wte", "wpe") and not last.startswith("c_"):
            part, array = "kernel", array.transpose((1, 0) if array.ndim == 2 else (2, 3, 1, 0))
        path = module.replace(".", "/").replace("layer/0", "layer_._0").replace("h/0", "h_._0")
        base = path.partition("/")[0]
        result[f"{base}/tf_model/{path}/{part}:0"] = tensor(name, array)
    return WeightFile("keras", [], result)


@pytest.mark.parametrize("spelling", [as_flax, as_keras])
@pytest.mark.parametrize("model", MODELS)
def test_same_numbers(model, spelling):
    config, shapes = MODELS[model]
    inputs = [[1, 5, 3]] if model != "vit" else [np.random.default_rng(0).standard_normal((3, 4, 4)).astype(np.float32)]
    want, got = (
        ReferenceModel(loaded.spec, loaded.weights).forward(inputs)[0]
        for loaded in (resolve(config, tensors(shapes)), resolve(config, spelling(tensors(shapes))))
    )
    assert np.array_equal(got.hidden, want.hidden)


def test_names():
    assert flax_name("params.model.layers.0.input_layernorm.weight") == ("model.layers.0.input_layernorm.weight", False)
    assert flax_name("final_logits_bias") == ("final_logits_bias", False)
    assert keras_name("classifier/tf_bert_for_sequence_classification/classifier/kernel:0") == ("classifier.weight", True)
    assert keras_name("transformer/tf_gpt2/transformer/h_._11/attn/c_attn/weight:0") == ("transformer.h.11.attn.c_attn.weight", False)


def test_turned_tensor_is_made_once_and_released():
    reads = []

    class Counting:
        name, shape, dtype = "w", (2, 3), "F32"

        def to_float32(self):
            reads.append(1)
            return np.arange(6, dtype=np.float32).reshape(2, 3)

        def release(self):
            reads.append(0)

    view = turned(Counting(), (1, 0))
    assert view.to_float32().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert view.raw_rows(1, 2).view(np.float32).tolist() == [1, 4] and reads == [1]
    view.release()
    assert view.shape == (3, 2) and view.raw_rows(0, 1).size == 8 and reads == [1, 0, 1]
