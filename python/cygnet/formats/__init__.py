"""Reading model files: bytes on disk to named, lazy tensors and metadata. One reader a file; this one chooses it."""

import os
from pathlib import Path

from cygnet.errors import FormatError, ModelNotFound
from cygnet.files import read_bytes
from cygnet.formats import gguf, keras, marian, safetensors, torch_legacy
from cygnet.formats.shards import SPLIT_NAME, read_sharded, read_split_gguf
from cygnet.formats.tensor import Tensor
from cygnet.formats.weight_file import WeightFile

__all__ = ["Tensor", "WeightFile", "find_weights", "open_weights"]

HEAD_BYTES = 64
INDEX_SUFFIX = ".index.json"
# Names looked for in a folder, best first; of each, the single file before the index of its shards.
FOLDER_NAMES = ["model.safetensors", "pytorch_model.bin", "model.pt", "model.npz", "flax_model.msgpack", "tf_model.h5", "model.h5"]


def _is_zip(head):
    return head.startswith(b"PK\x03\x04")


def _read_zip(path):
    """PyTorch archives and .npz are both zip files, only the former hold a pickle of this name; some .npz are Marian's."""
    # Imported here, as the standard library's reader of archives brings much along.
    from cygnet.formats.npz import read_npz
    from cygnet.formats.torch_zip import read_torch_zip
    from cygnet.formats.zip_members import ZipMembers

    members = ZipMembers(path)
    is_torch = any(name.rpartition("/")[2] == "data.pkl" for name in members)
    members.close()
    return read_torch_zip(path) if is_torch else marian.from_npz(read_npz(path))


def _read_flax(path):
    from cygnet.formats.flax import read_flax

    return read_flax(path)


def _no_magic(head):
    return False


# (whether a file's first bytes are the format's, suffixes, reader): what the bytes say is believed before the name.
READERS = [
    (gguf.recognises, (".gguf",), gguf.read_gguf),
    (safetensors.recognises, (".safetensors",), safetensors.read_safetensors),
    (_is_zip, (".npz",), _read_zip),
    (torch_legacy.recognises, (".bin", ".pt", ".pth"), torch_legacy.read_torch_legacy),
    (keras.recognises, (".h5", ".hdf5"), keras.read_keras),
    (marian.recognises, (), marian.read_marian),
    (_no_magic, (".msgpack",), _read_flax),
]


def open_weights(path):
    """Open a model's weights: one file, an index of shards, or a folder that holds either.

    Parameters
    ----------
    path : str or Path
        In a folder, the first of `FOLDER_NAMES` is taken (a file before its index), then a single ``*.gguf``, then a model of Marian; other files are
        ignored.

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
    if not os.path.exists(path):
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
    # The parts of one split model count as one file.
    if found and len({match["base"] if (match := SPLIT_NAME.fullmatch(path.name)) else path.name for path in found}) == 1:
        return found[0]
    if found:
        raise ModelNotFound(f"{folder}: several GGUF files, name one of them: {', '.join(path.name for path in found)}")
    own = _marian_files(folder)
    if len(own) == 1:
        return own[0]
    raise ModelNotFound(f"{folder}: no weights: looked for {', '.join(FOLDER_NAMES)}, their {INDEX_SUFFIX}, and one *.gguf")


def _marian_files(folder):
    """Models in Marian's binary format, which have no fixed name."""
    return [path for path in sorted(folder.glob("*.bin")) if path.is_file() and marian.recognises(_head(path))]


def _head(path):
    try:
        return read_bytes(path, size=HEAD_BYTES)
    except FileNotFoundError:
        raise ModelNotFound(f"{path}: no such file") from None


def _read_file(path):
    head = _head(path)
    if head.startswith(b"version https://git-lfs"):
        raise FormatError(f"{path}: a Git LFS pointer, not the weights themselves; fetch them with git lfs pull")
    read = next((read for recognises, _, read in READERS if recognises(head)), None)
    read = read or next((read for _, suffixes, read in READERS if path.suffix.lower() in suffixes), None)
    if read is None:
        raise FormatError(f"{path}: not a weights file of a known kind (safetensors, GGUF, PyTorch, npz, Marian, Flax, Keras)")
    weights = read(path)
    parts = weights.metadata.get("split.count") if weights.kind == "gguf" else 1
    if isinstance(parts, int) and parts > 1:
        return read_split_gguf(weights, gguf.read_gguf)
    return weights
