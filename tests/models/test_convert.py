"""Converted models: exact where the type is wide enough, close where it is not, loadable as they are."""

import json

import numpy as np
import pytest

from cygnet.errors import FormatError, OptionError, WriteError
from cygnet.formats import Tensor, open_weights
from cygnet.formats.safetensors import read_safetensors, write_safetensors
from cygnet.formats.tensor import stored_bytes
from cygnet.models.convert import convert
from cygnet.models.encode import ENCODERS, encoded


def stored(array, name="w"):
    array = np.ascontiguousarray(array, np.float32)
    return Tensor(name, "F32", array.shape, lambda: array.reshape(-1).view(np.uint8))


@pytest.mark.parametrize("dtype, steps", [("Q8_0", 127), ("Q4_1", 7.5)])
def test_blocks_are_off_by_half_a_step_at_most(dtype, steps):
    x = np.random.default_rng(0).standard_normal((5, 96)).astype(np.float32)
    x[0] = 0
    x[1] = 3.5
    back = encoded(stored(x), dtype).to_float32()
    reach = np.abs(x.reshape(-1, 32)).max(axis=1) if dtype == "Q8_0" else np.ptp(x.reshape(-1, 32), axis=1) / 2
    # Four bits are fitted by least squares, which may leave the ends of a range a little further off.
    steps *= 1 if dtype == "Q8_0" else 0.6
    assert (np.abs(back - x).reshape(-1, 32).max(axis=1) <= reach / steps * 0.5 + np.abs(x).max() * 2e-3).all()
    assert (back[:1] == 0).all() and np.abs(back[1] - 3.5).max() < 0.02


@pytest.mark.parametrize("source, dtype", [("Q5_0", "Q8_0"), ("Q4_0", "Q4_1"), ("Q4_K", "Q4_1")])
def test_blocks_keep_their_codes(source, dtype):
    """What an engine would take as codes is written as these codes, not rounded a second time."""
    raw = np.random.default_rng(3).integers(0, 60, stored_bytes(source, (3, 512)), dtype=np.uint8)
    tensor = Tensor("w", source, (3, 512), lambda: raw)
    back = encoded(tensor, dtype)
    np.testing.assert_allclose(back.to_float32(), tensor.to_float32(), rtol=2e-3, atol=np.abs(tensor.to_float32()).max() * 2e-3)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ENCODERS)
def test_tensors_are_encoded_in_parts(dtype, threads, monkeypatch):
    x = np.random.default_rng(1).standard_normal((37, 64)).astype(np.float32)
    whole = encoded(stored(x), dtype).raw().tobytes()
    monkeypatch.setattr("cygnet.models.encode.CHUNK_ELEMENTS", 128)
    assert encoded(stored(x), dtype, threads).raw().tobytes() == whole


def test_float16_refuses_what_it_cannot_hold():
    with pytest.raises(OptionError, match="bfloat16"):
        encoded(stored([[1e6]]), "F16").raw()
    assert encoded(stored([[np.inf, -1.0]]), "F16").to_float32().tolist() == [[np.inf, -1.0]]


def test_blocks_in_safetensors(tmp_path):
    x = np.random.default_rng(2).standard_normal((4, 64)).astype(np.float32)
    blocks = encoded(stored(x), "Q8_0")
    write_safetensors(tmp_path / "m.safetensors", {"w": blocks, "b": np.ones(3, np.float32)}, {"format": "pt"})
    read = read_safetensors(tmp_path / "m.safetensors")
    assert (read["w"].dtype, read["w"].shape, read["b"].dtype) == ("Q8_0", (4, 64), "F32")
    np.testing.assert_array_equal(read["w"].to_float32(), blocks.to_float32())


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"x": ["Q8_0", [4, 64]]}',
        '{"w": ["Q8_0", [4, 32]]}',
        '{"w": ["F99", [4, 64]]}',
        '{"w": 3}',
        '{"w": ["Q8_0", [-4, -64]]}',
        '{"w": ["Q8_0", []]}',
    ],
)
def test_wrong_descriptions_of_blocks(tmp_path, text):
    write_safetensors(tmp_path / "m.safetensors", {"w": np.zeros((4, 68), np.uint8)}, {"cygnet.blocks": text})
    with pytest.raises(FormatError, match="cygnet.blocks"):
        read_safetensors(tmp_path / "m.safetensors")


class TestModels:
    @pytest.mark.parametrize("name", ["llama-b", "bert-seqcls", "t5-flan", "gpt2-b-bin", "gguf-llama-q8_0"])
    @pytest.mark.parametrize("weights", ["float32", "bfloat16", "int8", "int4"])
    def test_converted_models_load(self, conformance, tmp_path, name, weights):
        import cygnet

        source = conformance / "models" / name
        target = tmp_path / ("out.gguf" if name.startswith("gguf") else "out")
        convert(source, target, weights=weights)
        with cygnet.load(source, weights="float32") as before, cygnet.load(target) as after:
            ids = [3, 5, 7, 9, 11, 4]
            arguments = (ids, [0, 5, 6]) if name.startswith("t5") else (ids,)
            a, b = before.forward(*arguments), after.forward(*arguments)
        error = np.abs(a - b).max() / np.abs(a).max()
        assert error <= {"float32": 1e-6, "bfloat16": 0.05, "int8": 0.1, "int4": 0.6}[weights]
        if weights in ("int8", "int4") and name == "llama-b":
            assert any(tensor.is_block_type for tensor in open_weights(target).values())

    @pytest.mark.parametrize("name", ["llama-b", "bert-seqcls", "t5-flan", "bart-b", "gguf-llama-q8_0"])
    @pytest.mark.parametrize("weights", ["float32", "float16", "bfloat16", "int8", "int4"])
    def test_converting_first_changes_nothing(self, conformance, tmp_path, name, weights):
        """A converted file gives the bits of the source that is loaded with the same weights=, but for 8-bit matrices that were not stored as such.

        Made at load they lie in the Hadamard basis, which no file format holds.
        """
        import cygnet

        source = conformance / "models" / name
        target = convert(source, tmp_path / ("out.gguf" if name.startswith("gguf") else "out"), weights=weights, threads=2)
        if weights.startswith("int") and any(len(t.shape) == 2 and t.shape[1] % 32 for t in open_weights(source).values()):
            pytest.skip("rows that are no multiple of 32")
        with cygnet.load(source, weights=weights) as direct, cygnet.load(target) as converted:
            ids = [3, 5, 7, 9, 11, 4]
            arguments = (ids, [0, 5, 6]) if "t5" in name or "bart" in name else (ids,)
            a, b = direct.forward(*arguments), converted.forward(*arguments)
        if weights.startswith("int"):
            assert np.abs(a - b).max() <= 0.05 * np.abs(a).max()
        else:
            np.testing.assert_array_equal(a, b)

    def test_targets_of_the_wrong_kind(self, conformance, tmp_path):
        with pytest.raises(OptionError, match="becomes a folder"):
            convert(conformance / "models" / "llama-b", tmp_path / "x.gguf", weights="int8")
        for target in (tmp_path, tmp_path / "x"):
            with pytest.raises(OptionError, match="ends in .gguf"):
                convert(conformance / "models" / "gguf-llama-q8_0", target, weights="int4")

    def test_progress(self, conformance, tmp_path):
        seen = []
        convert(conformance / "models" / "llama-b", tmp_path / "x", weights="int8", progress=lambda done, total: seen.append((done, total)))
        assert [done for done, _ in seen] == list(range(1, len(seen) + 1)) and {total for _, total in seen} == {len(seen)}

    def test_settings_are_copied_and_nothing_is_overwritten(self, conformance, tmp_path):
        target = convert(conformance / "models" / "bart-b", tmp_path / "new", weights="float16")
        assert json.loads((target / "config.json").read_text())["model_type"] == "bart"
        assert (target / "generation_config.json").is_file()
        assert sorted(file.name for file in target.glob("*.safetensors")) == ["model.safetensors"]
        with pytest.raises(OptionError, match="is there already"):
            convert(conformance / "models" / "bart-b", target, weights="float16")


def test_unknown_form(tmp_path):
    with pytest.raises(OptionError, match="int2"):
        convert(tmp_path, tmp_path / "x", weights="int2")


def test_a_target_that_cannot_be_written_is_named(conformance, tmp_path):
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "model"
    with pytest.raises(WriteError, match=f"{target} cannot be written"):
        convert(conformance / "models" / "llama-a", target, weights="float32")
