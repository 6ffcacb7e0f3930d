"""NumPy archives: stored, compressed, any order of bytes and axes; no pickles."""

import io
import struct
import zipfile

import numpy as np
import pytest

from cygnet.formats import open_weights

ARRAYS = {
    "layer.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "half": np.linspace(-2, 2, 5).astype(np.float16),
    "double": np.array([[1.5]], np.float64),
    "ids": np.array([-1, 2**40], np.int64),
    "flags": np.array([True, False]),
    "scalar": np.float32(2.5),
    "empty": np.zeros((0, 3), np.int8),
    "columns": np.asfortranarray(np.arange(24, dtype=np.int16).reshape(2, 3, 4)),
    "big": np.arange(4, dtype=">f4"),
    "big columns": np.asfortranarray(np.arange(6, dtype=">i8").reshape(2, 3)),
    "vector in columns": np.asfortranarray(np.arange(3, dtype=np.float32)),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_equals_numpy(tmp_path, save):
    save(tmp_path / "model.npz", **ARRAYS)
    with open_weights(tmp_path) as weights:
        assert weights.kind == "npz" and list(weights) == list(ARRAYS)
        for name, array in ARRAYS.items():
            assert weights[name].shape == array.shape
            np.testing.assert_array_equal(weights[name].numpy(), array)
            np.testing.assert_array_equal(weights[name].to_float32(), array.astype(np.float32))
            weights[name].release()
        np.testing.assert_array_equal(weights["columns"].to_float32(slice(1, 2)), ARRAYS["columns"][1:2])


def test_stored_arrays_are_views(tmp_path):
    np.savez(tmp_path / "model.npz", w=np.arange(6, dtype=np.float32))
    with open_weights(tmp_path) as weights:
        assert weights["w"].raw().ctypes.data == weights["w"].raw().ctypes.data


def test_equals_conformance_models(conformance):
    for path in (conformance / "models").glob("*/model.npz"):
        expected = np.load(path)
        with open_weights(path.parent) as weights:
            assert set(weights) == set(expected.files)
            for name in expected.files:
                np.testing.assert_array_equal(weights[name].numpy(), expected[name])


def npy(header, data=b"", version=1, length=None):
    text = header.encode() if isinstance(header, str) else header
    size = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", size) + text + data


def archive(content, name="w.npy", compress=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compress) as target:
        target.writestr(name, content)
    return stream.getvalue()


def header(descr="'<f4'", fortran="False", shape="(1,)", more=""):
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}{more}}}"


def pickled():
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], object))
    return stream.getvalue()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_versions(tmp_path, version):
    (tmp_path / "model.npz").write_bytes(archive(npy(header(), struct.pack("<f", 5), version)))
    with open_weights(tmp_path) as weights:
        assert weights["w"].to_float32().tolist() == [5]


HOSTILE = {
    "objects": (archive(pickled()), "'w'", "objects"),
    "text": (archive(npy(header("'<U5'"), bytes(20))), "'w'", "<U5"),
    "raw bytes that could be bfloat16": (archive(npy(header("'|V2'"), bytes(2))), "'w'", "|V2"),
    "records": (archive(npy(header("[('a', '<f4')]"), bytes(4))), "'w'", "records"),
    "records by text": (archive(npy(header("'f4,f4'"), bytes(8))), "'w'"),
    "dates": (archive(npy(header("'<M8[s]'"), bytes(8))), "'w'"),
    "no magic": (archive(b"plain text of some length"), "'w'", "not a .npy array"),
    "too short": (archive(b"\x93NUMPY"), "'w'", "not a .npy array"),
    "version 9": (archive(npy(header(), bytes(4), 9)), "'w'", "not a .npy array"),
    "header longer than the member": (archive(npy(header(), bytes(4), length=9000)), "'w'", "header of 9000 bytes"),
    "header of 4 GiB": (archive(npy(header(), bytes(4), 2, length=2**32 - 1)), "'w'", "header of 4294967295 bytes"),
    "header is code": (archive(npy("__import__('os').system('true')")), "'w'", "damaged header"),
    "header is not Python": (archive(npy("{{{")), "'w'", "damaged header"),
    "header is nested": (archive(npy("(" * 9000)), "'w'", "damaged header"),
    "header is a list": (archive(npy("[]")), "'w'", "damaged header"),
    "header without shape": (archive(npy("{'descr': '<f4', 'fortran_order': False}")), "'w'", "damaged header"),
    "unknown type": (archive(npy(header("'<q9'"), bytes(4))), "'w'", "damaged header"),
    "negative size": (archive(npy(header(shape="(-1,)"), bytes(4))), "'w'", "shape (-1,)"),
    "size of text": (archive(npy(header(shape="('1',)"), bytes(4))), "'w'", "damaged header"),
    "size is a flag": (archive(npy(header(shape="(True,)"), bytes(4))), "'w'", "damaged header"),
    "shape is a number": (archive(npy(header(shape="1"), bytes(4))), "'w'", "damaged header"),
    "order is a number": (archive(npy(header(fortran="1"), bytes(4))), "'w'", "damaged header"),
    "hundred dimensions": (archive(npy(header(shape=str((1,) * 100)), bytes(4))), "'w'", "damaged header"),
    "shape too large": (archive(npy(header(shape="(2,)"), bytes(4))), "'w'", "takes 8 bytes, the archive holds 4"),
    "shape too small": (archive(npy(header(), bytes(8))), "'w'", "takes 4 bytes, the archive holds 8"),
    "product above 63 bits": (archive(npy(header(shape=str((2**40, 2**40))), bytes(4))), "'w'", "takes"),
    "deflated bomb": (
        archive(npy(header(shape=f"({2**40},)"), bytes(1 << 20)), compress=zipfile.ZIP_DEFLATED),
        "'w'",
        "takes",
    ),
    "other compression": (archive(npy(header(), bytes(4)), compress=zipfile.ZIP_BZIP2), "compression method 12"),
    "no zip": (b"nothing of the kind", "zip archive is damaged"),
    "empty": (b"", "zip archive is damaged"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile(refused, case):
    content, *words = HOSTILE[case]
    refused("model.npz", content, *words)


def test_damaged_deflate(refused):
    content = bytearray(archive(npy(header(shape="(100,)"), bytes(400)), compress=zipfile.ZIP_DEFLATED))
    content[60:70] = bytes(10)
    refused("model.npz", bytes(content), "w")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_mutations(tmp_path, survives_mutations, save):
    save(tmp_path / "model.npz", **{name: ARRAYS[name] for name in ("layer.weight", "columns", "big")})
    outcomes = survives_mutations(tmp_path / "model.npz")
    assert outcomes[False] > 30
