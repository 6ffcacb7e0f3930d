"""Which reader and which file: by content, by name, by the order in a folder; the same model in every format."""

import io
import struct
import zipfile

import numpy as np
import pytest
from marian_writer import write_marian

from cygnet.errors import FormatError, ModelNotFound
from cygnet.formats import FOLDER_NAMES, find_weights, open_weights
from cygnet.formats.gguf_write import write_gguf
from cygnet.formats.safetensors import read_safetensors, write_safetensors

ARRAYS = {"layer.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "layer.bias": np.array([0.5, -1], np.float32)}


def write_torch(path, arrays):
    """A PyTorch archive, opcode by opcode."""

    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def numbers(*values):
        return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"

    program = b"\x80\x02}("
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for key, (name, array) in enumerate(arrays.items()):
            strides = [stride // array.itemsize for stride in array.strides]
            program += (
                text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + b"ctorch\nFloatStorage\n" + text(str(key)) + text("cpu")
            )
            program += b"J" + struct.pack("<i", array.size) + b"tQK\x00" + numbers(*array.shape) + numbers(*strides) + b"\x89NtR"
            archive.writestr(f"model/data/{key}", array.tobytes())
        archive.writestr("model/data.pkl", program + b"u.")
    path.write_bytes(stream.getvalue())


def write_flax(path, arrays):
    msgpack = pytest.importorskip("msgpack")
    packed = {name: msgpack.ExtType(1, msgpack.packb((array.shape, array.dtype.name, array.tobytes()))) for name, array in arrays.items()}
    path.write_bytes(msgpack.packb(packed))


def write_keras(path, arrays):
    with pytest.importorskip("h5py").File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


WRITERS = {
    "model.safetensors": ("safetensors", write_safetensors),
    "model.gguf": ("gguf", lambda path, arrays: write_gguf(path, arrays, {})),
    "model.npz": ("npz", lambda path, arrays: np.savez(path, **arrays)),
    "model.pt": ("torch", write_torch),
    "pytorch_model.bin": ("torch", write_torch),
    "model.alphas.bin": ("marian", write_marian),
    "flax_model.msgpack": ("flax", write_flax),
    "tf_model.h5": ("keras", write_keras),
    "model.h5": ("keras", write_keras),
}


@pytest.mark.parametrize("name", WRITERS)
def test_same_model_in_every_format(tmp_path, name):
    kind, write = WRITERS[name]
    write(tmp_path / name, ARRAYS)
    for source in (tmp_path, tmp_path / name, str(tmp_path / name)):
        with open_weights(source) as weights:
            assert weights.kind == kind and weights.files == [tmp_path / name] and set(weights) == set(ARRAYS)
            assert name in repr(weights) and kind in repr(weights)
            for key, array in ARRAYS.items():
                tensor = weights[key]
                assert (tensor.name, tensor.dtype, tensor.shape, tensor.nbytes) == (key, "F32", array.shape, array.nbytes)
                np.testing.assert_array_equal(tensor.to_float32(), array)
                np.testing.assert_array_equal(tensor.raw(), array.reshape(-1).view(np.uint8))
            with pytest.raises(KeyError):
                weights["absent"]


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "flax_model.msgpack"])
def test_content_is_believed_before_the_name(tmp_path, name):
    kind, write = WRITERS[name]
    written = tmp_path / name
    write(written, ARRAYS)
    for other in ("weights.dat", "model.safetensors", "model.bin", "noextension"):
        written.rename(tmp_path / other)
        written = tmp_path / other
        with open_weights(written) as weights:
            assert weights.kind == kind


def test_order_in_a_folder(tmp_path):
    """Each name in turn is the best that is there; its single file goes before its index."""
    (tmp_path / "model.gguf").write_bytes(b"")
    assert find_weights(tmp_path).name == "model.gguf"
    for name in reversed(FOLDER_NAMES):
        for candidate in (name + ".index.json", name):
            (tmp_path / candidate).write_bytes(b"")
            assert find_weights(tmp_path).name == candidate
    (tmp_path / "another.safetensors").write_bytes(b"")
    assert find_weights(tmp_path).name == "model.safetensors"


@pytest.mark.parametrize("content", [b"", b"text", bytes(100), b"\x80\x04}."])
@pytest.mark.parametrize("name", ["weights", "weights.txt", "config.json"])
def test_unknown_kinds(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match="not a weights file of a known kind"):
        open_weights(tmp_path / name)


def test_git_lfs_pointer(tmp_path):
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 3\n")
    with pytest.raises(FormatError, match="Git LFS pointer.*git lfs pull"):
        open_weights(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(ModelNotFound, match="no weights: looked for model.safetensors, "):
        open_weights(tmp_path)
    with pytest.raises(ModelNotFound, match="no such file or folder"):
        open_weights(tmp_path / "absent")
    with pytest.raises(ModelNotFound, match="no such file or folder"):
        open_weights("x" * 300)


def test_unreadable_file(tmp_path):
    with pytest.raises(FormatError, match="cannot be read"):
        read_safetensors(tmp_path)


def test_every_conformance_model_opens(conformance):
    opened = 0
    for folder in sorted((conformance / "models").iterdir()):
        if not (folder / "golden.json").exists():
            continue
        with open_weights(folder) as weights:
            assert weights.nbytes > 0 and all(tensor.to_float32().shape == tensor.shape for tensor in weights.values())
        opened += 1
    assert opened > 10
