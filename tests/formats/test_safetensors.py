"""safetensors: round trips byte for byte, and every abuse of the format refused."""

import json

import numpy as np
import pytest

from cygnet.errors import FormatError, ModelNotFound
from cygnet.formats import Tensor, open_weights
from cygnet.formats.dtypes import PLAIN_TYPES
from cygnet.formats.safetensors import read_safetensors, write_safetensors


def file_bytes(header, data=b"", length=None):
    """A safetensors file with any header (an object, or text as it is)."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def examples():
    random = np.random.default_rng(0)
    tensors = {}
    for name, plain in PLAIN_TYPES.items():
        raw = random.integers(0, 2 if name == "BOOL" else 256, 15 * plain.itemsize, np.uint8)
        tensors[f"layer.{name}.weight"] = Tensor(f"layer.{name}.weight", name, (3, 5), lambda raw=raw: raw)
    return tensors


def test_round_trip_of_every_type(tmp_path):
    path, tensors = tmp_path / "model.safetensors", examples()
    write_safetensors(path, tensors, {"format": "pt", "π": "ü"})
    with read_safetensors(path) as weights:
        assert weights.metadata == {"format": "pt", "π": "ü"} and weights.kind == "safetensors" and weights.files == [path]
        assert set(weights) == set(tensors) and weights.nbytes == sum(tensor.nbytes for tensor in tensors.values())
        for name, tensor in weights.items():
            assert (tensor.dtype, tensor.shape) == (tensors[name].dtype, (3, 5))
            np.testing.assert_array_equal(tensor.raw(), tensors[name].raw())
            if PLAIN_TYPES[tensor.dtype].numpy:
                assert tensor.raw().ctypes.data % PLAIN_TYPES[tensor.dtype].itemsize == 0
        write_safetensors(tmp_path / "again.safetensors", weights, weights.metadata)
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "array", [np.float32(3.5), np.zeros((0, 3), np.float16), np.arange(6, dtype=">i4").reshape(2, 3).T, np.ones((1,) * 8, np.int64)]
)
def test_odd_arrays(tmp_path, array):
    write_safetensors(tmp_path / "model.safetensors", {"w": array})
    with open_weights(tmp_path) as weights:
        assert weights["w"].shape == np.shape(array)
        np.testing.assert_array_equal(weights["w"].numpy(), array)


def test_empty_file_of_tensors(tmp_path):
    write_safetensors(tmp_path / "model.safetensors", {})
    with open_weights(tmp_path) as weights:
        assert len(weights) == 0


def test_reads_what_the_safetensors_package_writes(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.ones(3, np.float16),
        "c": np.array(7, np.int64),
        "d": np.zeros((2, 0), np.uint8),
    }
    safetensors.save_file(arrays, tmp_path / "model.safetensors", {"format": "np"})
    with open_weights(tmp_path) as weights:
        assert weights.metadata == {"format": "np"} and set(weights) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(weights[name].numpy(), array)


def test_the_safetensors_package_reads_what_is_written(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(3, np.float16), "c": np.array(7, np.int8)}
    write_safetensors(tmp_path / "model.safetensors", arrays, {"format": "np"})
    for name, array in safetensors.load_file(tmp_path / "model.safetensors").items():
        np.testing.assert_array_equal(array, arrays[name])


def test_unaligned_header_is_read(tmp_path):
    values = np.arange(3, dtype=np.float32)
    (tmp_path / "model.safetensors").write_bytes(
        file_bytes({"odd": entry(shape=[3], offsets=[0, 12])} | {"__metadata__": {"x": "y"}}, values.tobytes())
    )
    with open_weights(tmp_path) as weights:
        np.testing.assert_array_equal(weights["odd"].to_float32(), values)


def test_spaces_after_the_header(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(file_bytes(json.dumps({"w": entry()}).encode() + b"   ", bytes(4)))
    with open_weights(tmp_path) as weights:
        assert list(weights) == ["w"]


HUGE = 2**63
HOSTILE = {
    "empty file": (b"", "0 bytes are too few"),
    "seven bytes": (b"\1\0\0\0\0\0\0", "7 bytes are too few"),
    "header length alone": (file_bytes(b"", length=5), "cut short"),
    "huge header length": (file_bytes({}, length=2**64 - 1), "above the limit"),
    "header length above the cap": (file_bytes({}, length=100_000_001), "above the limit"),
    "header longer than the file": (file_bytes({"w": entry()}, length=5000), "cut short"),
    "empty header": (file_bytes(b""), "not a JSON object"),
    "header is not JSON": (file_bytes(b"{nothing}"), "not valid JSON"),
    "header is a list": (file_bytes(b"[]"), "not a JSON object"),
    "header is not UTF-8": (file_bytes(b'{"\xff\xfe": 1}'), "not valid JSON"),
    "text after the header": (file_bytes(b"{} {}"), "not valid JSON"),
    "deep nesting": (file_bytes(b'{"w":' + b"[" * 100_000), "nested too deeply"),
    "deep objects": (file_bytes(b'{"w":' * 100_000), "nested too deeply"),
    "huge integer": (file_bytes(b'{"w":{"dtype":"F32","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,4]}}', bytes(4)), "not valid JSON"),
    "duplicate name": (
        file_bytes(b'{"w":' + json.dumps(entry()).encode() + b',"w":' + json.dumps(entry()).encode() + b"}", bytes(4)),
        "duplicate key 'w'",
    ),
    "duplicate field": (file_bytes(b'{"w":{"dtype":"F32","dtype":"F16","shape":[1],"data_offsets":[0,4]}}', bytes(4)), "duplicate key 'dtype'"),
    "duplicate metadata": (file_bytes(b'{"__metadata__":{"a":"b","a":"c"}}'), "duplicate key 'a'"),
    "name is half a character": (file_bytes(rb'{"\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)), "not valid Unicode"),
    "metadata is a list": (file_bytes({"__metadata__": []}), "__metadata__"),
    "metadata of numbers": (file_bytes({"__metadata__": {"a": 1}}), "__metadata__"),
    "entry is a number": (file_bytes({"w": 1}), "'w'", "must be an object"),
    "no dtype": (file_bytes({"w": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4)), "'w'", "unknown dtype None"),
    "unknown dtype": (file_bytes({"w": entry("F33")}, bytes(4)), "'w'", "unknown dtype 'F33'"),
    "dtype is a list": (file_bytes({"w": entry(["F32"])}, bytes(4)), "'w'", "unknown dtype"),
    "no shape": (file_bytes({"w": {"dtype": "F32", "data_offsets": [0, 4]}}, bytes(4)), "'w'", "shape"),
    "negative size": (file_bytes({"w": entry(shape=[-1, -1])}, bytes(4)), "'w'", "shape"),
    "size is a float": (file_bytes({"w": entry(shape=[1.0])}, bytes(4)), "'w'", "shape"),
    "size is a boolean": (file_bytes({"w": entry(shape=[True])}, bytes(4)), "'w'", "shape"),
    "size is text": (file_bytes({"w": entry(shape=["1"])}, bytes(4)), "'w'", "shape"),
    "size above 63 bits": (file_bytes({"w": entry(shape=[HUGE])}, bytes(4)), "'w'", "shape"),
    "product above 63 bits": (file_bytes({"w": entry(shape=[2**32, 2**32])}, bytes(4)), "'w'", "more than 2**63 - 1 elements"),
    "product that wraps to one": (file_bytes({"w": entry(shape=[2**62, 4, 1])}, bytes(4)), "'w'", "more than 2**63 - 1 elements"),
    "huge product beside a zero": (file_bytes({"w": entry(shape=[2**62, 4, 0], offsets=[0, 0])}), "'w'", "more than 2**63 - 1 elements"),
    "hundred dimensions": (file_bytes({"w": entry(shape=[1] * 100)}, bytes(4)), "'w'", "at most 32"),
    "shape too large for the range": (file_bytes({"w": entry(shape=[2])}, bytes(4)), "'w'", "takes 8 bytes, data_offsets cover 4"),
    "shape too small for the range": (file_bytes({"w": entry(shape=[1], offsets=[0, 8])}, bytes(8)), "'w'", "takes 4 bytes, data_offsets cover 8"),
    "no offsets": (file_bytes({"w": {"dtype": "F32", "shape": [1]}}, bytes(4)), "'w'", "data_offsets"),
    "one offset": (file_bytes({"w": entry(offsets=[4])}, bytes(4)), "'w'", "data_offsets"),
    "three offsets": (file_bytes({"w": entry(offsets=[0, 4, 8])}, bytes(4)), "'w'", "data_offsets"),
    "offsets backwards": (file_bytes({"w": entry(offsets=[4, 0])}, bytes(4)), "'w'", "data_offsets"),
    "negative offset": (file_bytes({"w": entry(offsets=[-4, 0])}, bytes(4)), "'w'", "data_offsets"),
    "offset above 63 bits": (file_bytes({"w": entry(offsets=[HUGE, HUGE + 4])}, bytes(4)), "'w'", "data_offsets"),
    "offset past the end": (file_bytes({"w": entry(shape=[1000], offsets=[0, 4000])}, bytes(4)), "'w'", "cut short"),
    "gap at the start": (file_bytes({"w": entry(offsets=[4, 8])}, bytes(8)), "'w'", "gap"),
    "gap in the middle": (file_bytes({"a": entry(), "b": entry(offsets=[8, 12])}, bytes(12)), "'b'", "gap"),
    "overlap": (file_bytes({"a": entry(shape=[2], offsets=[0, 8]), "b": entry(shape=[2], offsets=[4, 12])}, bytes(12)), "'b'", "overlaps"),
    "same range twice": (file_bytes({"a": entry(), "b": entry()}, bytes(4)), "'b'", "overlaps"),
    "bytes left over": (file_bytes({"w": entry()}, bytes(5)), "1 bytes after the last tensor"),
    "data missing": (file_bytes({"w": entry()}), "'w'", "cut short"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile(refused, case):
    content, *words = HOSTILE[case]
    refused("model.safetensors", content, *words)


def test_mutations(tmp_path, survives_mutations):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"a": np.ones((2, 3), np.float32), "b": np.arange(5, dtype=np.int8)}, {"format": "pt"})
    outcomes = survives_mutations(path)
    assert outcomes[False] > outcomes[True]


@pytest.mark.parametrize(
    "tensors, metadata",
    [
        ({"w": np.array(["text"])}, None),
        ({"w": np.zeros(2, "M8[s]")}, None),
        ({"w": np.array([object()])}, None),
        ({"__metadata__": np.zeros(1)}, None),
        ({3: np.zeros(1)}, None),
        ({}, {"step": 3}),
    ],
)
def test_write_refuses(tmp_path, tensors, metadata):
    with pytest.raises(FormatError, match="model.safetensors"):
        write_safetensors(tmp_path / "model.safetensors", tensors, metadata)
    assert list(tmp_path.iterdir()) == []


def test_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"w": np.zeros(1)})
    before = path.read_bytes()

    def fail():
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_safetensors(path, {"w": Tensor("w", "F32", (1,), fail)})
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_missing_file(tmp_path):
    with pytest.raises(ModelNotFound, match="absent"):
        open_weights(tmp_path / "absent.safetensors")
    with pytest.raises(ModelNotFound, match="absent"):
        read_safetensors(tmp_path / "absent.safetensors")
