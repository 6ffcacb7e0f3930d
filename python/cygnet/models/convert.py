"""convert(): a model written again with its matrices in another stored type, ready to load without further work.

A folder becomes a folder: one model.safetensors with the tensors under their own names, and config, tokenizer and settings beside it. A GGUF file
becomes a GGUF file. int8 and int4 are GGUF's blocks Q8_0 and Q4_1 (in safetensors as bytes that the metadata describes); tables of tokens and output
layers, which lose more by four bits than they gain, stay at eight. Vectors (norms, biases) keep their type.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from cygnet.errors import OptionError
from cygnet.files import read_json
from cygnet.formats import open_weights
from cygnet.formats.gguf_write import write_gguf
from cygnet.formats.safetensors import write_safetensors
from cygnet.models.encode import BLOCK, encoded

# weights= -> (stored type of matrices, of tables)
TYPES = {
    "float32": ("F32", "F32"),
    "float16": ("F16", "F16"),
    "bfloat16": ("BF16", "BF16"),
    "int8": ("Q8_0", "Q8_0"),
    "int4": ("Q4_1", "Q8_0"),
}
_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".npz", ".msgpack", ".h5", ".gguf", ".onnx", ".ot", ".index.json")


def convert(source: str | Path, target: str | Path, *, weights: str) -> Path:
    """Writes a model with its weights in another form.

    Parameters
    ----------
    source : str or Path
        As `cygnet.load` takes it.
    target : str or Path
        A folder that does not exist yet or is empty; for a GGUF source a file that does not exist.
    weights : str
        "float32", "float16", "bfloat16", "int8" or "int4".

    Returns
    -------
    Path
        The target.

    Raises
    ------
    OptionError
        The target is there already, or `weights` is not known.
    WeightsError, UnsupportedModel
        The source could not be loaded either.
    """
    from cygnet.architectures.registry import load_spec
    from cygnet.hub import resolve

    if weights not in TYPES:
        raise OptionError(f"weights={weights!r} is not known: {', '.join(TYPES)}")
    path, target = resolve(source), Path(target)
    if target.exists() and (target.is_file() or any(target.iterdir())):
        raise OptionError(f"{target} is there already: name a new one")
    roles = _roles(load_spec(path).weights)
    with open_weights(path) as stored:
        tensors = {name: _converted(tensor, roles.get(name), *TYPES[weights]) for name, tensor in stored.items()}
        if stored.kind == "gguf":
            write_gguf(target, tensors, stored.metadata)
        else:
            target.mkdir(parents=True, exist_ok=True)
            write_safetensors(target / "model.safetensors", tensors, {"format": "pt"})
            _copy_settings(path if path.is_dir() else path.parent, target)
    return target


def _roles(views) -> dict[str, str]:
    """ "matrix" or "table" for each stored tensor whose rows the model takes as stored; others are turned or computed with and cannot be blocks."""
    roles = {}
    for name, view in views.items():
        source = view.row_source()
        if source is not None and len(view.shape) == 2:
            table = ".embed." in name or name.startswith("head.")
            roles[source[0].name] = "table" if table or roles.get(source[0].name) == "table" else "matrix"
    return roles


def _converted(tensor, role: str | None, matrix_type: str, table_type: str):
    if len(tensor.shape) < 2 or tensor.dtype.startswith(("I", "U", "BOOL")):
        return tensor
    dtype = table_type if role == "table" else matrix_type
    if dtype in ("Q8_0", "Q4_1") and (role is None or tensor.shape[-1] % BLOCK):
        dtype = "F16" if tensor.is_block_type or tensor.dtype in ("F32", "F64") else tensor.dtype
    return tensor if dtype == tensor.dtype else encoded(tensor, dtype)


def _copy_settings(source: Path, target: Path) -> None:
    """Config, tokenizer and settings: every file that holds no weights, and the folders that modules.json names."""
    for file in source.iterdir():
        if file.is_file() and not file.name.endswith(_WEIGHT_SUFFIXES):
            shutil.copyfile(file, target / file.name)
    for module in read_json(source / "modules.json", []):
        folder = module.get("path")
        if folder and (source / folder).is_dir() and ".." not in folder:
            shutil.copytree(source / folder, target / folder, dirs_exist_ok=True)
