"""Reading model files: bytes on disk to named, lazy tensors and metadata. One reader a file; this one chooses it."""

from pathlib import Path

from cygnet.errors import FormatError, ModelNotFound
from cygnet.formats import gguf, safetensors
from cygnet.formats.shards import read_sharded
from cygnet.formats.tensor import Tensor
from cygnet.formats.weight_file import WeightFile

__all__ = ["Tensor", "WeightFile", "find_weights", "open_weights"]

# What a file's first bytes say is believed before its name.
HEAD_BYTES = 64
READERS = [
    # (recognises(head), suffixes, read(path))
    (gguf.recognises, (".gguf",), gguf.read_gguf),
    (safetensors.recognises, (".safetensors",), safetensors.read_safetensors),
]
INDEX_SUFFIX = ".index.json"
# Names looked for in a folder, best first; of each, the single file before the index of its shards.
FOLDER_NAMES = ["model.safetensors", "pytorch_model.bin", "model.pt", "model.npz", "flax_model.msgpack", "tf_model.h5", "model.h5"]


def open_weights(path):
    """Open a model's weights: one file, an index of shards, or a folder that holds either.

    Parameters
    ----------
    path : str or Path
        In a folder, the first of `FOLDER_NAMES` is taken (a file before its index), then a single ``*.gguf``; other files are ignored.

    Returns
    -------
    WeightFile
        Tensors by name, nothing read yet.

    Raises
    ------
    ModelNotFound
        If there is no such file, or no weights in the folder.
    FormatError
        If the file is damaged or of an unknown kind.

    Examples
    --------
    >>> open_weights("nowhere")
    Traceback (most recent call last):
    cygnet.errors.ModelNotFound: nowhere: no such file or folder
    """
    path = Path(path)
    if not path.exists():
        raise ModelNotFound(f"{path}: no such file or folder")
    if path.is_dir():
        path = find_weights(path)
    return read_sharded(path, _read_file) if path.name.endswith(INDEX_SUFFIX) else _read_file(path)


def find_weights(folder):
    """The file of a folder that `open_weights` takes: weights or an index of shards.

    Raises
    ------
    ModelNotFound
        If there is none, or several GGUF files to choose from.
    """
    folder = Path(folder)
    for name in FOLDER_NAMES:
        for candidate in (folder / name, folder / (name + INDEX_SUFFIX)):
            if candidate.is_file():
                return candidate
    found = sorted(folder.glob("*.gguf"))
    if len(found) == 1:
        return found[0]
    if found:
        raise ModelNotFound(f"{folder}: several GGUF files, name one of them: {', '.join(path.name for path in found)}")
    raise ModelNotFound(f"{folder}: no weights: looked for {', '.join(FOLDER_NAMES)}, their {INDEX_SUFFIX}, and one *.gguf")


def _read_file(path):
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None
    if head.startswith(b"version https://git-lfs"):
        raise FormatError(f"{path}: a Git LFS pointer, not the weights themselves; fetch them with git lfs pull")
    for recognises, _, read in READERS:
        if recognises(head):
            return read(path)
    for _, suffixes, read in READERS:
        if path.suffix in suffixes:
            return read(path)
    raise FormatError(f"{path}: not a weights file of a known kind (safetensors, GGUF, PyTorch, npz, Flax, Keras)")
