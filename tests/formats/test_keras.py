"""Keras and TensorFlow weights in HDF5."""

import sys

import numpy as np
import pytest

from cygnet.errors import FormatError, MissingDependency
from cygnet.formats import open_weights

ARRAYS = {
    "bert/bert/embeddings/weight:0": np.arange(6, dtype=np.float32).reshape(2, 3),
    "bert/bert/encoder/kernel:0": np.linspace(-1, 1, 4).astype(np.float16).reshape(2, 2),
    "step": np.array(7, np.int64),
    "big": np.arange(3, dtype=">f4"),
    "flags": np.array([True, False]),
    "empty": np.zeros((0, 2), np.float32),
}


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py")


@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}, {"chunks": True}])
def test_values(tmp_path, h5py, options):
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        for name, array in ARRAYS.items():
            file.create_dataset(name, data=array, **(options if array.size and array.ndim else {}))
    with open_weights(tmp_path) as weights:
        assert weights.kind == "keras" and set(weights) == set(ARRAYS)
        for name, array in ARRAYS.items():
            assert weights[name].shape == array.shape
            np.testing.assert_array_equal(weights[name].numpy(), array)
            weights[name].release()
        kept = weights["big"].to_float32()
    np.testing.assert_array_equal(kept, ARRAYS["big"])


def test_contiguous_datasets_are_views(tmp_path, h5py):
    with h5py.File(tmp_path / "model.h5", "w", userblock_size=512) as file:
        file.create_dataset("w", data=np.arange(6, dtype=np.float32))
    with open_weights(tmp_path) as weights:
        assert weights["w"].raw().ctypes.data == weights["w"].raw().ctypes.data
        assert weights["w"].to_float32().tolist() == [0, 1, 2, 3, 4, 5]


def test_whole_saved_model(tmp_path, h5py):
    with h5py.File(tmp_path / "model.h5", "w") as file:
        file.create_dataset("model_weights/dense/kernel:0", data=np.ones(2, np.float32))
        file.create_dataset("optimizer_weights/dense/m:0", data=np.zeros(2, np.float32))
        file.attrs["model_config"] = "{}"
    with open_weights(tmp_path) as weights:
        assert list(weights) == ["dense/kernel:0"]


def test_needs_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "model.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(MissingDependency, match=r"cygnet\[keras\]"):
        open_weights(tmp_path / "model.h5")


def test_data_in_other_files(tmp_path, h5py):
    (tmp_path / "secret").write_bytes(bytes(8))
    with h5py.File(tmp_path / "external.h5", "w") as file:
        file.create_dataset("w", (2,), np.float32, external=[(str(tmp_path / "secret"), 0, 8)])
    with pytest.raises(FormatError, match="'w' keeps its data in another file"):
        open_weights(tmp_path / "external.h5")
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        layout = h5py.VirtualLayout((2,), np.float32)
        layout[:] = h5py.VirtualSource(str(tmp_path / "external.h5"), "w", (2,))
        file.create_virtual_dataset("w", layout)
    with pytest.raises(FormatError, match="'w' keeps its data in another file"):
        open_weights(tmp_path / "virtual.h5")
    with h5py.File(tmp_path / "links.h5", "w") as file:
        file["w"] = h5py.ExternalLink("external.h5", "/w")
        file["model_weights"] = h5py.ExternalLink("external.h5", "/")
        file["own"] = np.ones(1, np.float32)
    with pytest.raises(FormatError, match="links.h5"):
        open_weights(tmp_path / "links.h5")


def test_hostile(tmp_path, h5py, refused):
    def written(fill):
        path = tmp_path / "written.h5"
        with h5py.File(path, "w") as file:
            fill(file)
        return path.read_bytes()

    def text(file):
        file["w"] = "text"

    refused("model.h5", written(lambda file: None), "no datasets")
    refused("model.h5", written(text), "'w'", "strings")
    refused("model.h5", written(lambda file: file.create_dataset("w", dtype=h5py.Empty("f").dtype, data=h5py.Empty("f"))), "'w'")
    good = written(lambda file: file.create_dataset("w", data=np.ones(1000, np.float32)))
    refused("model.h5", good[:-100], "")
    refused("model.h5", good[:20], "damaged")
    refused("model.h5", b"", "damaged")
    refused("model.h5", b"text", "damaged")
