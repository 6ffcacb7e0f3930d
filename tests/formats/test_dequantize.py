"""GGUF blocks to float32 and to small integers: against the NumPy reference, the gguf package and stored goldens."""

import json

import numpy as np
import pytest

from cygnet._core._dequantize import dequantize, unpack_int4, unpack_int8
from cygnet.errors import OptionError
from cygnet.formats.quant_types import BLOCK_TYPES, GGML_TYPES
from cygnet.reference.dequantize import dequantize as reference

DECODED = ["F32", "F16", "BF16", *BLOCK_TYPES]
INT4, INT8 = ["Q4_0", "Q4_1", "Q4_K"], ["Q8_0", "Q5_0", "IQ4_NL", "IQ4_XS"]
BLOCK_OF = {quant.name: quant for quant in GGML_TYPES.values()}


def random_blocks(name, count, seed=0):
    """Blocks of every code and of scales of all magnitudes; no infinite or NaN scale."""
    raw = np.random.default_rng(seed).integers(0, 256, (count, BLOCK_OF[name].block_bytes), np.uint8)
    # Bit 14 of a half clear: its magnitude stays below 2. All scales lie at an even offset from one end of the block.
    for offset in {"Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,), "Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2)}.get(name, (0,)):
        raw[:, offset + 1] &= 0xBF
    return raw.reshape(-1)


@pytest.mark.parametrize("count", [0, 1, 2, 37])
@pytest.mark.parametrize("name", DECODED)
def test_equals_reference_bit_for_bit(name, count):
    raw = random_blocks(name, count)
    expected, actual = reference(name, raw), dequantize(name, raw)
    assert actual.dtype == np.float32 and actual.size == count * BLOCK_OF[name].block_size
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", DECODED)
def test_unaligned_input(name):
    raw = random_blocks(name, 5)
    padded = np.concatenate([np.zeros(1, np.uint8), raw])
    np.testing.assert_array_equal(dequantize(name, padded[1:]), dequantize(name, raw))


@pytest.mark.parametrize("name", DECODED)
def test_equals_gguf_package(name):
    gguf = pytest.importorskip("gguf")
    raw = random_blocks(name, 23, seed=1)
    expected = gguf.quants.dequantize(raw.reshape(1, -1), gguf.GGMLQuantizationType[name])
    np.testing.assert_array_equal(dequantize(name, raw), expected.reshape(-1).astype(np.float32))


def test_equals_stored_goldens(conformance):
    arrays = np.load(conformance / "models" / "blocks.npz")
    cases = [case for case in json.loads((conformance / "models" / "blocks.json").read_text())["cases"] if case["op"] == "dequantize"]
    assert {case["params"]["type"] for case in cases} >= set(BLOCK_TYPES)
    for case in cases:
        raw = np.ascontiguousarray(arrays[case["inputs"]["raw"]]).view(np.uint8).reshape(-1)
        expected = arrays[case["outputs"]["out"]]
        np.testing.assert_array_equal(dequantize(case["params"]["type"], raw), expected.reshape(-1), err_msg=case["id"])


@pytest.mark.parametrize("name", ["F16", "BF16"])
def test_all_half_patterns(name):
    patterns = np.arange(65536, dtype=np.uint16)
    wide = dequantize(name, patterns.view(np.uint8))
    if name == "F16":
        expected = patterns.view(np.float16).astype(np.float32)
        nan = np.isnan(expected)
        assert np.array_equal(np.isnan(wide), nan)
        assert np.array_equal(wide.view(np.uint32)[~nan], expected.view(np.uint32)[~nan])
    else:
        assert np.array_equal(wide.view(np.uint32), patterns.astype(np.uint32) << 16)


@pytest.mark.parametrize("name", INT4)
def test_unpack_int4_is_exact(name):
    raw = random_blocks(name, 40, seed=2)
    groups = 40 * BLOCK_OF[name].block_size // 32
    codes, scales, minimums = unpack_int4(name, raw, groups)
    assert codes.shape == (groups, 32) and codes.dtype == np.uint8 and codes.max() == 15
    weights = scales[:, None] * codes.astype(np.float32) + minimums[:, None]
    np.testing.assert_array_equal(weights.reshape(-1), dequantize(name, raw))
    # One rounding instead of two changes nothing: kernels may fuse.
    fused = scales[:, None].astype(np.float64) * codes + minimums[:, None]
    if name != "Q4_1":
        np.testing.assert_array_equal(fused.astype(np.float32).reshape(-1), dequantize(name, raw))


@pytest.mark.parametrize("name", INT8)
def test_unpack_int8_is_exact(name):
    raw = random_blocks(name, 40, seed=3)
    groups = 40 * BLOCK_OF[name].block_size // 32
    codes, scales = unpack_int8(name, raw, groups)
    assert codes.shape == (groups, 32) and codes.dtype == np.int8
    np.testing.assert_array_equal((scales[:, None] * codes.astype(np.float32)).reshape(-1), dequantize(name, raw))


@pytest.mark.parametrize(
    "call",
    [
        lambda: dequantize("Q9_9", np.zeros(18, np.uint8)),
        lambda: dequantize("Q4_0", np.zeros(17, np.uint8)),
        lambda: unpack_int4("Q6_K", np.zeros(210, np.uint8), 8),
        lambda: unpack_int4("Q4_0", np.zeros(36, np.uint8), 1),
        lambda: unpack_int4("Q4_0", np.zeros(18, np.uint8), -1),
        lambda: unpack_int8("Q4_0", np.zeros(18, np.uint8), 1),
        lambda: unpack_int8("Q8_0", np.zeros(34, np.uint8), 2),
    ],
)
def test_refuses(call):
    with pytest.raises(OptionError, match="Q"):
        call()


@pytest.mark.parametrize("name", DECODED)
def test_reads_nothing_outside_its_blocks(name, guarded):
    for count in (1, 2, 5):
        raw = random_blocks(name, count)
        np.testing.assert_array_equal(dequantize(name, guarded(raw)), reference(name, raw))


@pytest.mark.parametrize("unpack, name", [*((unpack_int4, name) for name in INT4), *((unpack_int8, name) for name in INT8)])
def test_unpacks_nothing_outside_its_blocks(unpack, name, guarded):
    raw = random_blocks(name, 3)
    groups = 3 * BLOCK_OF[name].block_size // 32
    for inside, plain in zip(unpack(name, guarded(raw), groups), unpack(name, raw, groups), strict=True):
        np.testing.assert_array_equal(inside, plain)


def test_tables_agree():
    for name in DECODED:
        quant = BLOCK_OF[name]
        assert dequantize(name, np.zeros(quant.block_bytes, np.uint8)).size == quant.block_size


def test_table_equals_gguf_package():
    gguf = pytest.importorskip("gguf")
    for quant in GGML_TYPES.values():
        assert gguf.GGMLQuantizationType[quant.name] == quant.ggml_id
        assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(quant.ggml_id)] == (quant.block_size, quant.block_bytes)
