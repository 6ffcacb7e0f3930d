"""convert(): a model written again with its matrices in another stored type, ready to load without further work.

A folder becomes a folder: one model.safetensors with the tensors under their own names, and config, tokenizer and settings beside it. A GGUF file
becomes a GGUF file. int8 and int4 are GGUF's blocks Q8_0 and Q4_1 (in safetensors as bytes that the metadata describes); tables of tokens and output
layers, which lose more by four bits than they gain, stay at eight. What the model does not multiply by (norms, biases, positions), and routers of
experts, keep their type. So the converted model computes what the source does when it is loaded with that `weights=`, with two exceptions:

- Matrices that blocks cannot hold stay at 16 bits: those that the file stores transposed (nearly all of GPT-2) or otherwise than the model uses them,
  and those whose rows are no multiple of 32. `notice` is told how many.
- int8 in a file is Q8_0 in the plain basis. weights="int8" at load makes its codes in the Hadamard basis, which is a little more exact: logits of a
  SmolLM2 have a relative error of 0.0105 so, and of 0.026 when converted first.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from cygnet.cpu_count import thread_count
from cygnet.errors import OptionError
from cygnet.files import read_json, written
from cygnet.formats import Tensor, open_weights
from cygnet.formats.gguf_write import write_gguf
from cygnet.formats.safetensors import write_safetensors
from cygnet.models.encode import BLOCK, encoded
from cygnet.packing import matrix_roles

# weights= -> (stored type of matrices, of tables)
TYPES = {
    "float32": ("F32", "F32"),
    "float16": ("F16", "F16"),
    "bfloat16": ("BF16", "BF16"),
    "int8": ("Q8_0", "Q8_0"),
    "int4": ("Q4_1", "Q8_0"),
}
# Ways a tensor is used; of several uses the last of these decides.
CAUTION = ("block", "table", "computed", "exact")
_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".npz", ".msgpack", ".h5", ".gguf", ".onnx", ".ot", ".index.json")


def convert(
    source: str | Path,
    target: str | Path,
    *,
    weights: str,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    notice: Callable[[str], object] | None = None,
) -> Path:
    """Writes a model with its weights in another form.

    Parameters
    ----------
    source : str or Path
        As `cygnet.load` takes it.
    target : str or Path
        A folder that does not exist yet or is empty; for a GGUF source a file NAME.gguf that does not exist.
    weights : str
        "float32", "float16", "bfloat16", "int8" or "int4".
    threads : int, optional
        Default: what the process may really use.
    progress : callable, optional
        Called with the number of matrices that are written, and of all that will be.
    notice : callable, optional
        Called with a sentence that tells how many matrices stay at 16 bits, if any do that should become blocks.

    Returns
    -------
    Path
        The target.

    Raises
    ------
    OptionError
        The target is there already or of the wrong kind, or `weights` is not known.
    WeightsError, UnsupportedModel
        The source could not be loaded either.
    """
    from cygnet.architectures.registry import load_spec
    from cygnet.hub import resolve

    if weights not in TYPES:
        raise OptionError(f"weights={weights!r} is not known: {', '.join(TYPES)}")
    path, target = resolve(source), Path(target)
    threads = thread_count(threads)
    if target.exists() and (target.is_file() or any(target.iterdir())):
        raise OptionError(f"{target} is there already: name a new one")
    roles = _roles(load_spec(path))
    with open_weights(path) as stored:
        _check_target(target, stored.kind)
        tensors = {name: _converted(tensor, roles.get(name), *TYPES[weights], threads) for name, tensor in stored.items()}
        if progress is not None:
            tensors = _told(tensors, stored, progress)
        with written(target):
            if stored.kind == "gguf":
                write_gguf(target, tensors, stored.metadata)
            else:
                target.mkdir(parents=True, exist_ok=True)
                write_safetensors(target / "model.safetensors", tensors, {"format": "pt"})
                _copy_settings(path if path.is_dir() else path.parent, target)
        if notice is not None and weights in ("int8", "int4"):
            _tell_obstacles(stored, roles, weights, notice)
    return target


def _check_target(target: Path, kind: str) -> None:
    """A GGUF file becomes a file, everything else a folder: a name that says otherwise is a misunderstanding."""
    if kind == "gguf" and (target.suffix != ".gguf" or target.is_dir()):
        raise OptionError(f"a GGUF file becomes a GGUF file: name a target that ends in .gguf, not {target}")
    if kind != "gguf" and target.suffix in (".gguf", ".safetensors", ".bin", ".npz"):
        raise OptionError(f"this model becomes a folder with config and weights: name a folder, not {target}")


def _roles(loaded) -> dict[str, str]:
    """How each stored tensor that the model multiplies by is used: "table", "block", "exact" (see packing.weight_kind), or "computed" from."""
    roles: dict[str, str] = {}
    for name, role in matrix_roles(loaded.spec, loaded.weights).items():
        view = loaded.weights[f"{name}.weight"]
        for tensor in view.sources():
            use = role if role == "exact" or view.row_source() is not None else "computed"
            roles[tensor.name] = max(use, roles.get(tensor.name, use), key=CAUTION.index)
    return roles


def _converted(tensor, role: str | None, matrix_type: str, table_type: str, threads: int):
    if not _is_matrix(tensor, role):
        return tensor
    dtype = table_type if role == "table" else matrix_type
    if dtype in ("Q8_0", "Q4_1") and _obstacle(tensor, role):
        dtype = "F16" if tensor.is_block_type or tensor.dtype in ("F32", "F64") else tensor.dtype
    return tensor if dtype == tensor.dtype else encoded(tensor, dtype, threads)


def _is_matrix(tensor, role: str | None) -> bool:
    """Whether a stored tensor is one of those whose type is changed."""
    return role not in (None, "exact") and len(tensor.shape) >= 2 and not tensor.dtype.startswith(("I", "U", "BOOL"))


def _obstacle(tensor, role: str | None) -> str | None:
    """Why blocks cannot hold a matrix, or None."""
    if role == "computed":
        return "they are stored transposed, or otherwise than the model uses them"
    return f"their rows are no multiple of {BLOCK}" if tensor.shape[-1] % BLOCK else None


def _tell_obstacles(stored, roles: dict[str, str], weights: str, notice: Callable[[str], object]) -> None:
    """Says how many matrices stay at 16 bits, and why."""
    matrices = [(tensor, roles.get(name)) for name, tensor in stored.items() if _is_matrix(tensor, roles.get(name))]
    reasons = [reason for reason in (_obstacle(tensor, role) for tensor, role in matrices) if reason]
    if reasons:
        count = f"{len(reasons)} of {len(matrices)} matrices stay at 16 bits, not {weights}"
        notice(f"{count}: {'; '.join(dict.fromkeys(reasons))}")


def _told(tensors: dict, stored, progress: Callable[[int, int], object]) -> dict:
    """The same tensors; each that is encoded tells when it was read."""
    changed = [name for name, tensor in tensors.items() if tensor is not stored[name]]
    done = 0

    def reading(tensor):
        def read():
            nonlocal done
            raw = tensor.raw()
            done += 1
            progress(done, len(changed))
            return raw

        return Tensor(tensor.name, tensor.dtype, tensor.shape, read)

    return {**tensors, **{name: reading(tensors[name]) for name in changed}}


def _copy_settings(source: Path, target: Path) -> None:
    """Config, tokenizer and settings: every file that holds no weights, and the folders that modules.json names."""
    for file in source.iterdir():
        if file.is_file() and not file.name.endswith(_WEIGHT_SUFFIXES):
            shutil.copyfile(file, target / file.name)
    for module in read_json(source / "modules.json", []):
        folder = module.get("path")
        if folder and (source / folder).is_dir() and ".." not in folder:
            shutil.copytree(source / folder, target / folder, dirs_exist_ok=True)
