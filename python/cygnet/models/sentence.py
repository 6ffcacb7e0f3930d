"""What a Sentence-Transformers folder says about making vectors: modules.json and the files it names.

The folder lists modules: the Transformer itself, then Pooling, Dense, LayerNorm, Normalize. Beside them lie the length limit
(sentence_bert_config.json) and the prompts (config_sentence_transformers.json). Format: the Sentence-Transformers documentation, "Saving models".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from cygnet.errors import FormatError, UnsupportedModel, WeightsError
from cygnet.files import read_json
from cygnet.models.pooling import check_modes

# Keys of older pooling configs, one flag a mode.
_POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}

_ACTIVATIONS = {
    "Identity": lambda x: x,
    "Tanh": np.tanh,
    "ReLU": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}

# How files and folders of one module were named over the years.
_LENGTH_FILES = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)


@dataclass(frozen=True)
class SentenceSettings:
    """How token states become a vector.

    Attributes
    ----------
    pooling : tuple of str
        Modes of cygnet.models.pooling.
    steps : tuple of functions
        Applied to the (n, d) pooled vectors in order: Dense and LayerNorm modules.
    normalize : bool
        Whether vectors are divided by their L2 norm at the end.
    max_length : int or None
        Longest text in tokens, special ones included.
    lower : bool
        Texts are lower-cased first.
    prompts : dict of str to str
        Texts put in front, by name; `default_prompt` names the one used when none is asked for.
    include_prompt : bool
        Whether the prompt's own tokens take part in pooling.
    described : bool
        False where the folder says nothing of this and the defaults hold: the mean over all tokens, divided by its L2 norm.
    """

    pooling: tuple[str, ...] = ("mean",)
    steps: tuple[Callable, ...] = ()
    normalize: bool = True
    max_length: int | None = None
    lower: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    include_prompt: bool = True
    described: bool = False


def read_sentence_settings(folder: Path) -> SentenceSettings:
    """The settings of a model folder.

    Raises
    ------
    UnsupportedModel
        A module or pooling mode is not known.
    FormatError
        A file is damaged.
    """
    about = read_json(folder / "config_sentence_transformers.json", {})
    modules = read_json(folder / "modules.json", [])
    lengths = _length_settings(folder, modules)
    settings = {
        "max_length": lengths.get("max_seq_length"),
        "lower": bool(lengths.get("do_lower_case")),
        "prompts": {name: text for name, text in (about.get("prompts") or {}).items() if text},
        "default_prompt": about.get("default_prompt_name"),
    }
    if modules:
        settings |= _read_modules(folder, modules)
    return SentenceSettings(**settings)


def _read_modules(folder: Path, modules: list) -> dict:
    settings: dict = {"normalize": False, "described": True}
    steps: list[Callable] = []
    for module in modules:
        kind, path = _kind(module, folder), _inside(folder, module.get("path", ""))
        if kind == "Pooling":
            settings |= _read_pooling(path)
        elif kind == "Normalize":
            settings["normalize"] = True
        elif kind == "Dense":
            steps.append(_read_dense(path))
        elif kind == "LayerNorm":
            steps.append(_read_layer_norm(path))
        elif kind not in ("Transformer", "Dropout"):
            known = "Transformer, Pooling, Dense, LayerNorm, Dropout, Normalize"
            raise UnsupportedModel(f"{folder / 'modules.json'}: module {module['type']} is not known; known are {known}")
        if settings["normalize"] and kind in ("Dense", "LayerNorm", "Pooling"):
            raise UnsupportedModel(f"{folder / 'modules.json'}: {kind} after Normalize is not supported")
    if "pooling" not in settings:
        raise UnsupportedModel(f"{folder / 'modules.json'} names no Pooling module")
    return {**settings, "steps": tuple(steps)}


def _read_pooling(path: Path) -> dict:
    config = read_json(path / "config.json", {})
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for flag, mode in _POOLING_FLAGS.items() if config.get(flag)]
    elif isinstance(modes, str):
        modes = modes.split("+")
    return {"pooling": check_modes(modes, str(path / "config.json")), "include_prompt": bool(config.get("include_prompt", True))}


def _read_dense(path: Path) -> Callable:
    config = read_json(path / "config.json", {})
    name = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if name not in _ACTIVATIONS:
        raise UnsupportedModel(f"{path / 'config.json'}: activation_function {name} is not known; known are {', '.join(_ACTIVATIONS)}")
    weight, bias = _affine(path, "linear", required_bias=bool(config.get("bias", True)))
    if weight.ndim != 2:
        raise WeightsError(f"{path}: tensor linear.weight has shape {weight.shape} where a matrix is wanted")
    activation = _ACTIVATIONS[name]
    return lambda x: activation(x @ weight.T + bias).astype(np.float32)


def _read_layer_norm(path: Path) -> Callable:
    weight, bias = _affine(path, "norm", required_bias=True)

    def layer_norm(x):
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5)) * weight + bias

    return layer_norm


def _affine(path: Path, name: str, required_bias: bool):
    """The (weight, bias) of a module as float32; bias 0 where the module has none."""
    from cygnet.formats import open_weights

    tensors = open_weights(path)
    wanted = [f"{name}.weight", f"{name}.bias"][: 2 if required_bias else 1]
    missing = [tensor for tensor in wanted if tensor not in tensors]
    if missing:
        raise WeightsError(f"{path}: missing tensors {', '.join(missing)}")
    arrays = [np.array(tensors[tensor].to_float32()) for tensor in wanted]
    return arrays if required_bias else (arrays[0], np.float32(0))


def _length_settings(folder: Path, modules: list) -> dict:
    """The length file, which lies in the folder of the Transformer module."""
    first = next((_inside(folder, m.get("path", "")) for m in modules if _kind(m, folder) == "Transformer"), folder)
    for name in _LENGTH_FILES:
        settings = read_json(first / name, {})
        if settings:
            limit = settings.get("max_seq_length")
            if limit is not None and (not isinstance(limit, int) or limit < 1):
                raise FormatError(f"{first / name}: max_seq_length is {limit!r}, a positive number is wanted")
            return settings
    return {}


def _kind(module, folder: Path) -> str:
    if not isinstance(module, dict) or not isinstance(module.get("type"), str):
        raise FormatError(f"{folder / 'modules.json'}: {module!r:.80} is no module with a type")
    return module["type"].rpartition(".")[2]


def _inside(folder: Path, path) -> Path:
    parts = PurePosixPath(str(path)).parts
    if not isinstance(path, str) or ".." in parts or PurePosixPath(path).is_absolute():
        raise FormatError(f"{folder / 'modules.json'}: path {path!r} leads out of the model's folder")
    return folder / path
