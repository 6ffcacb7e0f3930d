"""Tensors of Flax and Keras files under PyTorch's names and the right way round.

Flax says kernel, embedding and scale, and keeps linear maps as (in, out). Keras has the path of layers before the names, writes `_._` for a level
and `a___b` for b, says kernel, embeddings, gamma and beta, and turns linear maps likewise. Convolutions are (height, width, in, out) in both.
"""

from __future__ import annotations

import re

import numpy as np

from cygnet.formats.tensor import Tensor

FLAX_PARTS = {"kernel": "weight", "embedding": "weight", "scale": "weight"}
KERAS_PARTS = {"kernel": "weight", "embeddings": "weight", "gamma": "weight", "beta": "bias"}
TURNS = {2: (1, 0), 3: (2, 1, 0), 4: (3, 2, 0, 1)}


def in_torch_spelling(weights):
    """The tensors of an opened file by PyTorch's names.

    Parameters
    ----------
    weights : WeightFile or Mapping
        Other kinds than "flax" and "keras" are returned as they are.

    Returns
    -------
    Mapping of str to Tensor
    """
    kind = getattr(weights, "kind", None)
    if kind not in ("flax", "keras"):
        return weights
    rename = flax_name if kind == "flax" else keras_name
    result = {}
    for stored, tensor in weights.items():
        name, is_kernel = rename(stored)
        result[name] = turned(tensor, TURNS[len(tensor.shape)]) if is_kernel and len(tensor.shape) in TURNS else tensor
    return result


def flax_name(name):
    """(PyTorch's name, whether the tensor is a kernel).

    Examples
    --------
    >>> flax_name("params.bert.encoder.layer.0.output.dense.kernel")
    ('bert.encoder.layer.0.output.dense.weight', True)
    """
    name = name.removeprefix("params.")
    module, _, part = name.rpartition(".")
    return f"{module}.{FLAX_PARTS.get(part, part)}" if module else name, part == "kernel"


def keras_name(name):
    """(PyTorch's name, whether the tensor is a kernel); the path begins with the layer's and the model's own names.

    Examples
    --------
    >>> keras_name("bert/tf_bert_model/bert/encoder/layer_._0/output/LayerNorm/gamma:0")
    ('bert.encoder.layer.0.output.LayerNorm.weight', False)
    >>> keras_name("mlm___cls/tf_bert_for_masked_lm/mlm___cls/predictions/bias:0")
    ('cls.predictions.bias', False)
    """
    path = re.sub(r"[^/]*___", "", name.removesuffix(":0")).replace("_._", "/")
    levels = path.split("/")
    *modules, part = levels[2:] if len(levels) > 2 else levels
    return ".".join([*modules, KERAS_PARTS.get(part, part)]), part == "kernel"


def turned(tensor, axes):
    """A float32 Tensor with its axes permuted, made when it is first read and kept until it is released."""
    held = []

    def read():
        if not held:
            held.append(np.ascontiguousarray(tensor.to_float32().transpose(axes)).reshape(-1).view(np.uint8))
        return held[0]

    def release():
        held.clear()
        tensor.release()

    return Tensor(tensor.name, "F32", tuple(tensor.shape[axis] for axis in axes), read, release)
