"""Flax checkpoints in msgpack."""

import sys

import numpy as np
import pytest

from cygnet.errors import MissingDependency
from cygnet.formats import open_weights

ARRAYS = {
    "embeddings.word.embedding": np.arange(6, dtype=np.float32).reshape(2, 3),
    "encoder.0.kernel": np.linspace(-1, 1, 4).astype(np.float16).reshape(2, 2),
    "encoder.0.bias": np.array([1, -2], np.int64),
    "scalar": np.float32(2.5),
    "flags": np.array([True, False]),
}


def packed(msgpack, array, dtype=None, code=1):
    content = (list(np.shape(array)), dtype or np.asarray(array).dtype.name, np.asarray(array).tobytes())
    return msgpack.ExtType(code, msgpack.packb(content, use_bin_type=True))


def tree(msgpack):
    values = {name: packed(msgpack, array, code=3 if name == "scalar" else 1) for name, array in ARRAYS.items()}
    nested = {}
    for name, value in values.items():
        *path, last = name.split(".")
        node = nested
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return nested


def test_values(tmp_path):
    msgpack = pytest.importorskip("msgpack")
    (tmp_path / "flax_model.msgpack").write_bytes(msgpack.packb(tree(msgpack) | {"step": 3}))
    with open_weights(tmp_path) as weights:
        assert weights.kind == "flax" and set(weights) == set(ARRAYS)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(weights[name].numpy(), array)
            weights[name].release()


@pytest.mark.parametrize("dtype", ["bfloat16", b"bfloat16"])
def test_bfloat16(tmp_path, dtype):
    msgpack = pytest.importorskip("msgpack")
    patterns = np.array([0x3F80, 0xC020], np.uint16)
    (tmp_path / "model.msgpack").write_bytes(msgpack.packb({"w": packed(msgpack, patterns, dtype)}))
    with open_weights(tmp_path / "model.msgpack") as weights:
        assert weights["w"].dtype == "BF16" and weights["w"].to_float32().tolist() == [1, -2.5]


def chunked(msgpack, shape, pieces):
    names = [str(number) for number in range(len(pieces))]
    chunks = {name: packed(msgpack, piece) for name, piece in zip(names, pieces, strict=True)}
    return {"__msgpack_chunked_array__": True, "shape": {str(axis): size for axis, size in enumerate(shape)}, "chunks": chunks}


def test_chunks(tmp_path):
    msgpack = pytest.importorskip("msgpack")
    array = np.arange(30, dtype=np.float32).reshape(5, 6)
    (tmp_path / "model.msgpack").write_bytes(msgpack.packb({"w": chunked(msgpack, (5, 6), np.split(array.reshape(-1), [13, 26]))}))
    with open_weights(tmp_path / "model.msgpack") as weights:
        np.testing.assert_array_equal(weights["w"].numpy(), array)


def test_needs_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "msgpack", None)
    (tmp_path / "model.msgpack").write_bytes(b"\x80")
    with pytest.raises(MissingDependency, match=r"cygnet\[flax\]"):
        open_weights(tmp_path / "model.msgpack")


def test_hostile(refused):
    msgpack = pytest.importorskip("msgpack")
    good = packed(msgpack, np.zeros(2, np.float32))
    cases = {
        "empty": (b"", "damaged"),
        "no arrays": (msgpack.packb({"a": 1}), "no arrays"),
        "a list": (msgpack.packb([good]), "no arrays"),
        "cut": (msgpack.packb({"w": good})[:-3], "damaged"),
        "text after the end": (msgpack.packb({"w": good}) + b"x", "damaged"),
        "unknown extension": (msgpack.packb({"w": msgpack.ExtType(9, b"x")}), "extension 9"),
        "complex scalar": (msgpack.packb({"w": msgpack.ExtType(2, b"x")}), "extension 2"),
        "unknown type": (msgpack.packb({"w": packed(msgpack, np.zeros(2), "object")}), "other than"),
        "type is a number": (msgpack.packb({"w": msgpack.ExtType(1, msgpack.packb(([2], 3, bytes(8))))}), "other than"),
        "shape too large": (msgpack.packb({"w": msgpack.ExtType(1, msgpack.packb(([2**40], "float32", bytes(8))))}), "does not have"),
        "negative shape": (msgpack.packb({"w": msgpack.ExtType(1, msgpack.packb(([-2], "float32", bytes(8))))}), "no shape"),
        "hundred dimensions": (msgpack.packb({"w": msgpack.ExtType(1, msgpack.packb(([1] * 100, "float32", bytes(4))))}), "at most 32"),
        "two fields": (msgpack.packb({"w": msgpack.ExtType(1, msgpack.packb(([2], "float32")))}), "damaged"),
        "content is text": (msgpack.packb({"w": msgpack.ExtType(1, msgpack.packb(([2], "float32", "x" * 8)))}), "does not have"),
        "array of 2**32 - 1 items": (b"\xdd\xff\xff\xff\xff", "damaged"),
        "map of 2**32 - 1 items": (b"\xdf\xff\xff\xff\xff", "damaged"),
        "text of 2**32 - 1 bytes": (b"\xdb\xff\xff\xff\xff", "damaged"),
        "deep nesting": (b"\x81\xa1a" * 5000 + b"\x01", "damaged"),
        "chunks of another size": (msgpack.packb({"w": chunked(msgpack, (5,), [np.zeros(3, np.float32)])}), "'w'", "do not add up"),
        "chunks of two types": (msgpack.packb({"w": chunked(msgpack, (3,), [np.zeros(1, np.float32), np.zeros(1)])}), "'w'", "do not add up"),
        "chunks missing": (msgpack.packb({"w": {"__msgpack_chunked_array__": True}}), "damaged"),
        "no chunks": (msgpack.packb({"w": chunked(msgpack, (0,), [])}), "damaged"),
        "chunks of numbers": (msgpack.packb({"w": {"__msgpack_chunked_array__": True, "shape": {"0": 1}, "chunks": {"0": 5}}}), "damaged"),
        "chunk shape of text": (msgpack.packb({"w": chunked(msgpack, ("x",), [np.zeros(1, np.float32)])}), "no shape"),
    }
    for content, *words in cases.values():
        refused("model.msgpack", content, *words)


def test_huge_chunk_shape(refused):
    msgpack = pytest.importorskip("msgpack")
    content = msgpack.packb({"w": chunked(msgpack, (2**40, 2**20), [np.zeros(1, np.float32)])})
    refused("model.msgpack", content, "do not add up")


def test_mutations(tmp_path, survives_mutations):
    msgpack = pytest.importorskip("msgpack")
    (tmp_path / "model.msgpack").write_bytes(msgpack.packb(tree(msgpack)))
    outcomes = survives_mutations(tmp_path / "model.msgpack")
    assert outcomes[False] > 30
