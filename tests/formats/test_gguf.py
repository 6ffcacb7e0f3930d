"""GGUF: round trips, strings, and every abuse of the format refused."""

import struct
import time

import numpy as np
import pytest

from cygnet.errors import FormatError
from cygnet.formats import Tensor, open_weights
from cygnet.formats.gguf import read_gguf
from cygnet.formats.gguf_write import write_gguf
from cygnet.formats.quant_types import GGML_TYPES

METADATA = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.rope.freq_base": 10000.0,
    "some.negative": -3,
    "some.flag": True,
    "some.double": np.float64(1e-300),
    "some.large": np.uint64(2**64 - 1),
    "some.byte": np.int8(-5),
    "tokenizer.ggml.tokens": ["<s>", "Ġhello", "日本", ""],
    "tokenizer.ggml.scores": np.array([0.5, -1, 2, 3], np.float32),
    "tokenizer.ggml.token_type": np.array([3, 1, 1, 6], np.int32),
    "some.flags": np.array([True, False]),
    "empty.strings": [],
    "empty.numbers": np.zeros(0, np.int32),
}


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def key(name, kind, value):
    return string(name) + struct.pack("<I", kind) + value


def info(name, shape, kind=0, offset=0):
    return string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, offset)


def file_bytes(keys=(), infos=(), data=b"", *, version=3, key_count=None, tensor_count=None, magic=b"GGUF", alignment=32):
    head = magic + struct.pack("<IQQ", version, len(infos) if tensor_count is None else tensor_count, len(keys) if key_count is None else key_count)
    head += b"".join(keys) + b"".join(infos)
    return head + bytes(-len(head) % alignment) + data


def test_round_trip_of_every_type(tmp_path):
    path, random, tensors = tmp_path / "model.gguf", np.random.default_rng(0), {}
    for quant in GGML_TYPES.values():
        raw = random.integers(0, 256, 3 * 2 * quant.block_bytes, np.uint8)
        tensors[f"blk.{quant.name}"] = Tensor(f"blk.{quant.name}", quant.name, (3, 2 * quant.block_size), lambda raw=raw: raw)
    write_gguf(path, tensors, METADATA)
    with open_weights(path) as weights:
        assert weights.kind == "gguf" and list(weights) == list(tensors)
        for name, tensor in weights.items():
            assert (tensor.dtype, tensor.shape, tensor.nbytes) == (tensors[name].dtype, tensors[name].shape, tensors[name].nbytes)
            np.testing.assert_array_equal(tensor.raw(), tensors[name].raw())
        write_gguf(tmp_path / "again.gguf", weights, METADATA)
    assert (tmp_path / "again.gguf").read_bytes() == path.read_bytes()


def test_metadata(tmp_path):
    write_gguf(tmp_path / "model.gguf", {}, METADATA)
    with read_gguf(tmp_path / "model.gguf") as weights:
        metadata = weights.metadata
        assert list(metadata) == list(METADATA) and len(metadata) == len(METADATA) and "absent" not in metadata
        for name, expected in METADATA.items():
            value = metadata[name]
            if isinstance(expected, np.ndarray):
                np.testing.assert_array_equal(value, expected)
                assert value.dtype == expected.dtype and not value.flags.writeable
            else:
                assert value == expected and not isinstance(value, np.generic)
        assert metadata["tokenizer.ggml.tokens"] is metadata["tokenizer.ggml.tokens"]
    # Metadata outlives the file.
    assert metadata["general.architecture"] == "llama"


def test_strings_that_are_not_utf8(tmp_path):
    tokens = [b"\xff\xfe", b"ok", b"\xe2\x82", b"a\0b"]
    write_gguf(tmp_path / "model.gguf", {}, {"tokens": tokens, "name": b"\x80name", "count": 3})
    with read_gguf(tmp_path / "model.gguf") as weights:
        for _ in range(2):
            assert weights.metadata.raw("tokens") == tokens
            assert [token.encode("utf-8", "surrogateescape") for token in weights.metadata["tokens"]] == tokens
        assert weights.metadata["tokens"][1] == "ok" and weights.metadata["tokens"][3] == "a\0b"
        assert weights.metadata.raw("name") == b"\x80name"
        with pytest.raises(FormatError, match="'count' holds no strings"):
            weights.metadata.raw("count")
        with pytest.raises(KeyError):
            weights.metadata.raw("absent")


def test_strings_read_after_closing(tmp_path):
    write_gguf(tmp_path / "model.gguf", {}, {"tokens": ["a", "b"]})
    with read_gguf(tmp_path / "model.gguf") as weights:
        pass
    assert weights.metadata["tokens"] == ["a", "b"]


def test_large_vocabulary_is_quick(tmp_path):
    tokens = [f"token{index}é" for index in range(250_000)]
    write_gguf(tmp_path / "model.gguf", {}, {"tokens": tokens, "scores": np.zeros(250_000, np.float32)})
    start = time.process_time()
    with read_gguf(tmp_path / "model.gguf") as weights:
        opened = time.process_time()
        assert opened - start < 0.05
        decoded = weights.metadata["tokens"]
        assert time.process_time() - opened < 0.5
    assert decoded == tokens


@pytest.mark.parametrize("alignment", [1, 8, 32, 4096])
def test_alignment(tmp_path, alignment):
    arrays = {"a": np.arange(3, dtype=np.int8), "b": np.arange(5, dtype=np.float32)}
    write_gguf(tmp_path / "model.gguf", arrays, {"general.alignment": alignment})
    with read_gguf(tmp_path / "model.gguf") as weights:
        for name, array in arrays.items():
            np.testing.assert_array_equal(weights[name].numpy(), array)


def test_shapes_are_reversed(tmp_path):
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    (tmp_path / "model.gguf").write_bytes(file_bytes(infos=[info("w", (4, 3, 2))], data=array.tobytes()))
    with read_gguf(tmp_path / "model.gguf") as weights:
        np.testing.assert_array_equal(weights["w"].numpy(), array)


def test_version_2_and_padding_between_tensors(tmp_path):
    data = struct.pack("<f", 1) + bytes(124) + struct.pack("<f", 2)
    content = file_bytes(infos=[info("late", (1,), offset=128), info("early", ()), info("none", (0,), offset=64)], data=data, version=2)
    (tmp_path / "model.gguf").write_bytes(content)
    with read_gguf(tmp_path / "model.gguf") as weights:
        assert list(weights) == ["late", "early", "none"]
        assert weights["late"].to_float32().tolist() == [2] and weights["early"].to_float32() == 1 and weights["none"].to_float32().size == 0


def test_nonzero_booleans(tmp_path):
    content = file_bytes([key("one", 7, b"\x02"), key("many", 9, struct.pack("<IQ", 7, 3) + b"\x00\x01\xff")])
    (tmp_path / "model.gguf").write_bytes(content)
    with read_gguf(tmp_path / "model.gguf") as weights:
        assert weights.metadata["one"] is True and weights.metadata["many"].tolist() == [False, True, True]


def test_the_gguf_package_reads_what_is_written(tmp_path):
    gguf = pytest.importorskip("gguf")
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(4, np.float16)}
    write_gguf(tmp_path / "model.gguf", arrays, METADATA)
    reader = gguf.GGUFReader(tmp_path / "model.gguf")
    for stored in reader.tensors:
        np.testing.assert_array_equal(stored.data.reshape(arrays[stored.name].shape), arrays[stored.name])
    assert reader.fields["tokenizer.ggml.tokens"].contents() == METADATA["tokenizer.ggml.tokens"]
    assert reader.fields["llama.block_count"].contents() == 2 and reader.fields["some.flag"].contents()


def test_reads_what_the_gguf_package_writes(tmp_path):
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_block_count(3)
    writer.add_token_list(["a", "é"])
    array = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    writer.add_tensor("plain", array)
    writer.add_tensor("packed", gguf.quants.quantize(array, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with read_gguf(tmp_path / "model.gguf") as weights:
        assert weights.metadata["general.architecture"] == "llama" and weights.metadata["llama.block_count"] == 3
        assert weights.metadata["tokenizer.ggml.tokens"] == ["a", "é"]
        np.testing.assert_array_equal(weights["plain"].numpy(), array)
        assert weights["packed"].shape == (4, 64)
        np.testing.assert_allclose(weights["packed"].to_float32(), array, atol=np.abs(array).max() / 127)


BIG = 2**63
HOSTILE = {
    "empty file": (b"", "starts with b''"),
    "magic alone": (b"GGUF", "the version needs 4 bytes"),
    "other magic": (file_bytes(magic=b"GGML"), "not a GGUF file"),
    "header cut": (file_bytes()[:20], "the key count needs 8 bytes"),
    "version 1": (file_bytes(version=1), "version 1 is not read"),
    "version 4": (file_bytes(version=4), "version 4 is not read"),
    "version 0": (file_bytes(version=0), "version 0 is not read"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "tensor count 2**63": (file_bytes(tensor_count=BIG), f"tensor count {BIG} does not fit"),
    "key count 2**64 - 1": (file_bytes(key_count=2**64 - 1), f"key count {2**64 - 1} does not fit"),
    "more keys than there are": (file_bytes([key("a", 4, bytes(4))], data=bytes(64), key_count=2), "metadata key 1"),
    "more tensors than there are": (file_bytes(infos=[info("w", (1,))], data=bytes(64), tensor_count=3), "tensor 1"),
    "key of 1 GiB": (file_bytes([struct.pack("<Q", 1 << 30) + b"k" * 32]), "1 to 65535"),
    "empty key": (file_bytes([key("", 4, bytes(4))], data=bytes(64)), "metadata key 0 is 0 bytes long"),
    "empty tensor name": (file_bytes(infos=[info("", (1,))], data=bytes(64)), "the name of tensor 0 is 0 bytes long"),
    "key cut": (file_bytes([struct.pack("<Q", 60000) + b"k" * 32]), "metadata key 0 needs 60000 bytes"),
    "string of 1 GiB": (file_bytes([key("general.name", 8, struct.pack("<Q", 1 << 30))]), "'general.name'", f"needs {1 << 30} bytes"),
    "string of 2**64 - 1 bytes": (file_bytes([key("general.name", 8, struct.pack("<Q", 2**64 - 1))]), "'general.name'"),
    "unknown value type": (file_bytes([key("k", 13, bytes(8))]), "'k'", "unknown value type 13"),
    "unknown element type": (file_bytes([key("k", 9, struct.pack("<IQ", 99, 1) + bytes(8))]), "'k'", "unknown value type 99"),
    "array of arrays": (file_bytes([key("k", 9, struct.pack("<IQIQ", 9, 1, 9, 1) * 20)]), "'k'", "array of arrays"),
    "array of 2**63 numbers": (file_bytes([key("k", 9, struct.pack("<IQ", 6, BIG))]), "'k'", "needs"),
    "array of 2**61 numbers": (file_bytes([key("k", 9, struct.pack("<IQ", 12, 2**61))]), "'k'", "needs"),
    "array of 2**63 strings": (file_bytes([key("k", 9, struct.pack("<IQ", 8, BIG))]), "'k'", f"{BIG} strings"),
    "string in array of 2**64 - 1 bytes": (file_bytes([key("k", 9, struct.pack("<IQQ", 8, 1, 2**64 - 1))], data=bytes(64)), "string 0", "'k'"),
    "second string outside": (
        file_bytes([key("k", 9, struct.pack("<IQ", 8, 2) + string("ab") + struct.pack("<Q", 999))], data=bytes(64)),
        "string 1",
    ),
    "duplicate key": (file_bytes([key("k", 4, bytes(4)), key("k", 8, string("x"))], data=bytes(64)), "duplicate metadata key 'k'"),
    "alignment 0": (file_bytes([key("general.alignment", 4, struct.pack("<I", 0))], data=bytes(64)), "general.alignment", "power of two"),
    "alignment 24": (file_bytes([key("general.alignment", 4, struct.pack("<I", 24))], data=bytes(64)), "general.alignment", "24"),
    "alignment negative": (file_bytes([key("general.alignment", 5, struct.pack("<i", -32))], data=bytes(64)), "general.alignment"),
    "alignment is text": (file_bytes([key("general.alignment", 8, string("32"))], data=bytes(64)), "general.alignment"),
    "alignment is an array": (file_bytes([key("general.alignment", 9, struct.pack("<IQI", 4, 1, 32))], data=bytes(64)), "general.alignment"),
    "alignment is a flag": (file_bytes([key("general.alignment", 7, b"\1")], data=bytes(64)), "general.alignment"),
    "alignment 2**31": (file_bytes([key("general.alignment", 4, struct.pack("<I", 2**31))], [info("w", (1,))], bytes(64)), "'w'", "cut short"),
    "five dimensions": (file_bytes(infos=[info("w", (1,) * 5)], data=bytes(64)), "'w'", "5 dimensions"),
    "2**32 - 1 dimensions": (file_bytes(infos=[string("w") + struct.pack("<I", 2**32 - 1)], data=bytes(64)), "'w'", "dimensions"),
    "product above 63 bits": (file_bytes(infos=[info("w", (2**32, 2**32))], data=bytes(64)), "'w'", "more than 2**63 - 1"),
    "product that wraps to zero": (file_bytes(infos=[info("w", (2**32, 2**31, 2))], data=bytes(64)), "'w'", "more than 2**63 - 1"),
    "huge product beside a zero": (file_bytes(infos=[info("w", (2**63, 2, 0))], data=bytes(64)), "'w'", "more than 2**63 - 1"),
    "unknown type": (file_bytes(infos=[info("w", (1,), 77)], data=bytes(64)), "'w'", "unknown type 77"),
    "removed type": (file_bytes(infos=[info("w", (1,), 4)], data=bytes(64)), "'w'", "unknown type 4"),
    "known type that is not read": (file_bytes(infos=[info("w", (256,), 19)], data=bytes(64)), "'w'", "IQ1_S"),
    "row no multiple of its block": (file_bytes(infos=[info("w", (48, 2), 2)], data=bytes(64)), "'w'", "48", "Q4_0"),
    "scalar of a block type": (file_bytes(infos=[info("w", (), 2)], data=bytes(64)), "'w'", "Q4_0"),
    "offset past the end": (file_bytes(infos=[info("w", (1,), offset=1024)], data=bytes(64)), "'w'", "cut short"),
    "offset near 2**64": (file_bytes(infos=[info("w", (8,), offset=2**64 - 32)], data=bytes(64)), "'w'", "cut short"),
    "offset not aligned": (file_bytes(infos=[info("w", (1,), offset=4)], data=bytes(64)), "'w'", "alignment 32"),
    "tensor longer than the file": (file_bytes(infos=[info("w", (1000,))], data=bytes(64)), "'w'", "cut short"),
    "no data at all": (file_bytes(infos=[info("w", (1,))]), "'w'", "cut short"),
    "overlap": (file_bytes(infos=[info("a", (16,)), info("b", (1,), offset=32)], data=bytes(64)), "'b' overlaps 'a'"),
    "same place twice": (file_bytes(infos=[info("a", (1,)), info("b", (1,))], data=bytes(64)), "overlaps"),
    "duplicate tensor": (file_bytes(infos=[info("w", (1,)), info("w", (1,), offset=32)], data=bytes(64)), "duplicate tensor 'w'"),
    "tensor name of 1 GiB": (file_bytes(infos=[struct.pack("<Q", 1 << 30) + bytes(64)]), "the name of tensor 0"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile(refused, case):
    content, *words = HOSTILE[case]
    refused("model.gguf", content, *words)


def test_mutations(tmp_path, survives_mutations):
    path = tmp_path / "model.gguf"
    raw = np.zeros(2 * 18, np.uint8)
    tensors = {"a": np.ones((2, 3), np.float32), "q": Tensor("q", "Q4_0", (2, 32), lambda: raw)}
    write_gguf(path, tensors, METADATA)
    outcomes = survives_mutations(path)
    assert outcomes[False] > 30


@pytest.mark.parametrize(
    "tensors, metadata, word",
    [
        ({"w": np.zeros(1, np.uint16)}, {}, "'w'"),
        ({"w": np.array(["x"])}, {}, "'w'"),
        ({"w": np.zeros((1,) * 5, np.float32)}, {}, "'w'"),
        ({}, {"k": None}, "'k'"),
        ({}, {"k": np.zeros((2, 2))}, "'k'"),
        ({}, {"k": ["a", 3]}, "'k'"),
    ],
)
def test_write_refuses(tmp_path, tensors, metadata, word):
    with pytest.raises(FormatError, match=word):
        write_gguf(tmp_path / "model.gguf", tensors, metadata)
    assert list(tmp_path.iterdir()) == []
