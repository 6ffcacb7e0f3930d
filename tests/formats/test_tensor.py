"""Widening of every element type, rows, views and letting pages go."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from cygnet.errors import FormatError, OptionError
from cygnet.formats import Tensor, open_weights
from cygnet.formats.dtypes import PLAIN_TYPES, float8_table, widen
from cygnet.formats.safetensors import write_safetensors


def tensor(dtype, shape, raw):
    return Tensor("w", dtype, shape, lambda: np.asarray(raw).reshape(-1).view(np.uint8))


def test_all_bfloat16_patterns():
    patterns = np.arange(65536, dtype=np.uint16)
    wide = tensor("BF16", (256, 256), patterns).to_float32()
    assert wide.dtype == np.float32 and wide.shape == (256, 256)
    np.testing.assert_array_equal(wide.reshape(-1).view(np.uint32), patterns.astype(np.uint32) << 16)


def test_all_float16_patterns():
    patterns = np.arange(65536, dtype=np.uint16)
    wide = tensor("F16", (65536,), patterns).to_float32()
    exponent, mantissa = patterns >> 10 & 31, (patterns & 1023).astype(np.float64)
    expected = np.where(exponent == 0, np.ldexp(mantissa, -24), np.ldexp(1024 + mantissa, exponent.astype(int) - 25))
    expected = np.where(exponent == 31, np.where(mantissa == 0, np.inf, np.nan), expected) * np.where(patterns >> 15, -1, 1)
    np.testing.assert_array_equal(wide, expected)
    np.testing.assert_array_equal(np.signbit(wide[~np.isnan(wide)]), (patterns >> 15 != 0)[~np.isnan(wide)])


@pytest.mark.parametrize(
    "name, values",
    [
        ("F8_E4M3", {0x00: 0, 0x01: 2**-9, 0x08: 2**-6, 0x38: 1, 0x7E: 448, 0xFE: -448, 0x7F: np.nan, 0xFF: np.nan}),
        ("F8_E5M2", {0x01: 2**-16, 0x04: 2**-14, 0x3C: 1, 0x7B: 57344, 0x7C: np.inf, 0xFC: -np.inf, 0x7D: np.nan, 0xFF: np.nan}),
        ("F8_E4M3FNUZ", {0x01: 2**-10, 0x40: 1, 0x7F: 240, 0xFF: -240, 0x80: np.nan}),
        ("F8_E5M2FNUZ", {0x01: 2**-17, 0x40: 1, 0x7F: 57344, 0xFF: -57344, 0x80: np.nan}),
        ("F8_E8M0", {0x00: 2.0**-127, 0x7F: 1, 0xFE: 2.0**127, 0xFF: np.nan}),
    ],
)
def test_eight_bit_floats(name, values):
    table = float8_table(name)
    for code, value in values.items():
        np.testing.assert_equal(table[code], np.float32(value))
    np.testing.assert_array_equal(tensor(name, (16, 16), np.arange(256, dtype=np.uint8)).to_float32().reshape(-1), table)


@pytest.mark.parametrize("name, reference", [("F8_E4M3", "float8_e4m3fn"), ("F8_E5M2", "float8_e5m2"), ("F8_E4M3FNUZ", "float8_e4m3fnuz")])
def test_eight_bit_floats_equal_ml_dtypes(name, reference):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    expected = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, reference)).astype(np.float32)
    np.testing.assert_array_equal(float8_table(name), expected)


@pytest.mark.parametrize("name", [name for name, plain in PLAIN_TYPES.items() if plain.numpy and name != "C64"])
def test_numpy_types(name):
    dtype = np.dtype(PLAIN_TYPES[name].numpy)
    values = np.array([0, 1, 1, 0, 1, 0]).astype(dtype) if name == "BOOL" else np.array([0, 1, 100, 7, 3, 2], dtype) - (dtype.kind != "u")
    stored = tensor(name, (2, 3), values.reshape(2, 3))
    np.testing.assert_array_equal(stored.numpy(), values.reshape(2, 3))
    assert stored.numpy().dtype == dtype and stored.nbytes == 6 * dtype.itemsize
    wide = stored.to_float32()
    assert wide.dtype == np.float32
    np.testing.assert_array_equal(wide, values.reshape(2, 3).astype(np.float32))


def test_float64_rounds_to_nearest():
    values = np.array([1 + 2**-24, 1 + 3 * 2**-24, 1e300, -1e300, 2**-149, np.nan])
    np.testing.assert_array_equal(tensor("F64", (6,), values).to_float32(), np.array([1, 1 + 2**-22, np.inf, -np.inf, 2**-149, np.nan], np.float32))


@pytest.mark.parametrize("name", ["BF16", "F8_E4M3", "Q4_0"])
def test_types_numpy_does_not_have(name):
    stored = Tensor("layer.weight", name, (2, 32), lambda: np.zeros(256, np.uint8))
    with pytest.raises(FormatError, match=f"'layer.weight' is {name}"):
        stored.numpy()


def test_complex_has_no_float32_form():
    stored = tensor("C64", (2,), np.array([1 + 2j, 3], np.complex64))
    np.testing.assert_array_equal(stored.numpy(), [1 + 2j, 3])
    with pytest.raises(FormatError, match="'w' is complex"):
        stored.to_float32()


@pytest.mark.parametrize("offset", range(9))
@pytest.mark.parametrize("name", ["F32", "F16", "BF16", "F64", "I64"])
def test_unaligned_bytes(name, offset):
    itemsize = PLAIN_TYPES[name].itemsize
    content = np.arange(offset + 5 * itemsize, dtype=np.uint8)
    wide = widen(name, content[offset:])
    assert wide.flags.aligned
    np.testing.assert_array_equal(wide, widen(name, content[offset:].copy()))


@pytest.mark.parametrize("rows", [slice(None), slice(0, 0), slice(1, 3), slice(-2, None), slice(2, 1), slice(3, 100)])
@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 2, 3), (4, 0)])
def test_rows(shape, rows):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    stored = tensor("F32", shape, values)
    np.testing.assert_array_equal(stored.to_float32(rows), values[rows])
    start, stop, _ = rows.indices(4)
    if start <= stop:
        np.testing.assert_array_equal(stored.raw_rows(start, stop), values[start:stop].reshape(-1).view(np.uint8))


def test_rows_of_blocks():
    raw = np.random.default_rng(0).integers(0, 64, (6, 2, 34), np.uint8)
    stored = tensor("Q8_0", (6, 64), raw)
    np.testing.assert_array_equal(stored.to_float32(slice(2, 5)), stored.to_float32()[2:5])
    np.testing.assert_array_equal(stored.raw_rows(2, 5), raw[2:5].reshape(-1))
    assert stored.nbytes == raw.size and stored.is_block_type


@pytest.mark.parametrize("start, stop", [(-1, 2), (0, 5), (3, 2), (5, 5)])
def test_rows_outside(start, stop):
    with pytest.raises(IndexError, match="'w' has 4 rows"):
        tensor("F32", (4, 2), np.zeros(8, np.float32)).raw_rows(start, stop)


def test_rows_that_are_none():
    with pytest.raises(IndexError, match="single row of Q8_0"):
        tensor("Q8_0", (64,), np.zeros(68, np.uint8)).raw_rows(0, 1)
    with pytest.raises(IndexError, match="step 1"):
        tensor("F32", (4,), np.zeros(4, np.float32)).to_float32(slice(None, None, 2))
    with pytest.raises(IndexError, match="0 rows"):
        tensor("F32", (), np.zeros(1, np.float32)).raw_rows(0, 1)


def test_raw_is_a_view_that_cannot_be_written(tmp_path):
    write_safetensors(tmp_path / "model.safetensors", {"w": np.arange(6, dtype=np.float32)})
    with open_weights(tmp_path / "model.safetensors") as weights:
        first, second = weights["w"].raw(), weights["w"].raw()
        assert first.ctypes.data == second.ctypes.data
        with pytest.raises(ValueError, match="read-only"):
            first[0] = 1


def test_arrays_outlive_the_file(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"w": np.arange(6, dtype=np.float32)})
    with open_weights(path) as weights:
        kept, stored = weights["w"].to_float32(), weights["w"]
    path.unlink()
    np.testing.assert_array_equal(kept, np.arange(6))
    with pytest.raises(FormatError, match="is closed"):
        stored.raw()
    stored.release()


def test_replacing_the_file_while_open(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"w": np.zeros(4, np.float32)})
    with open_weights(path) as weights:
        write_safetensors(path, {"w": np.ones(4, np.float32)})
        np.testing.assert_array_equal(weights["w"].to_float32(), np.zeros(4))


def test_release_gives_memory_back(tmp_path):
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("no /proc")
    size = 32 << 20
    write_safetensors(tmp_path / "model.safetensors", {"w": np.ones(size, np.uint8)})

    def resident():
        return int(statm.read_text().split()[1]) * mmap.PAGESIZE

    with open_weights(tmp_path / "model.safetensors") as weights:
        before = resident()
        assert int(weights["w"].raw().sum()) == size
        touched = resident()
        weights["w"].release()
        released = resident()
        assert touched - before > size // 2
        assert released - before < size // 4
        assert int(weights["w"].raw()[:10].sum()) == 10


@pytest.mark.parametrize("rows", [[0, 1], 1, "0"])
def test_rows_are_a_slice(rows):
    with pytest.raises(OptionError, match="a slice of the first axis"):
        tensor("F32", (2, 2), np.zeros(4, np.float32)).to_float32(rows)
