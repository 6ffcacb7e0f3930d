"""Converted models: exact where the type is wide enough, close where it is not, loadable as they are."""

import json

import numpy as np
import pytest

from cygnet.errors import FormatError, OptionError
from cygnet.formats import Tensor, open_weights
from cygnet.formats.safetensors import read_safetensors, write_safetensors
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
    assert (np.abs(back - x).reshape(-1, 32).max(axis=1) <= reach / steps * 0.5 + np.abs(x).max() * 2e-3).all()
    assert (back[:1] == 0).all() and np.abs(back[1] - 3.5).max() < 0.02


@pytest.mark.parametrize("dtype", ENCODERS)
def test_tensors_are_encoded_in_parts(dtype, monkeypatch):
    x = np.random.default_rng(1).standard_normal((37, 64)).astype(np.float32)
    whole = encoded(stored(x), dtype).raw().tobytes()
    monkeypatch.setattr("cygnet.models.encode.CHUNK_ELEMENTS", 128)
    assert encoded(stored(x), dtype).raw().tobytes() == whole


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
