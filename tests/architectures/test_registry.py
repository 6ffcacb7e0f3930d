"""From folders and files to specs; errors for what is not known; control tokens; every family is tested and documented."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from small import LLAMA, llama_tensors

from cygnet.architectures.gguf import ARCHITECTURES
from cygnet.architectures.registry import FAMILIES, family_of, load_spec, resolve
from cygnet.architectures.tokens import labels, token_ids
from cygnet.errors import FormatError, ModelNotFound, UnsupportedModel, WeightsError

ROOT = Path(__file__).resolve().parents[2]


def save(folder, config=LLAMA, **files):
    from cygnet.formats.safetensors import write_safetensors

    write_safetensors(folder / "model.safetensors", {name: value.to_float32() for name, value in llama_tensors().items()})
    (folder / "config.json").write_text(json.dumps(config))
    for name, values in files.items():
        (folder / f"{name}.json").write_text(json.dumps(values))
    return folder


def test_folder(tmp_path):
    loaded = load_spec(save(tmp_path, generation_config={"eos_token_id": [3, 4]}))
    assert loaded.spec.family == "llama" and loaded.spec.tokens.eos == (3, 4)
    assert np.array_equal(loaded.weights["decoder.embed.token.weight"].to_float32(), llama_tensors()["model.embed_tokens.weight"].to_float32())


def test_unknown_model_type_lists_the_known_ones():
    with pytest.raises(UnsupportedModel, match="'mamba'.*bert.*llama.*xlm-roberta"):
        resolve({"model_type": "mamba"}, {})
    with pytest.raises(UnsupportedModel, match="None"):
        resolve({}, {})


def test_unknown_class_lists_the_known_ones():
    with pytest.raises(UnsupportedModel, match=r"LlamaForImageSegmentation.*\*ForCausalLM"):
        resolve({**LLAMA, "architectures": ["LlamaForImageSegmentation"]}, llama_tensors())


def test_missing_and_damaged_files(tmp_path):
    folder = save(tmp_path)
    (folder / "config.json").write_text("{")
    with pytest.raises(FormatError, match="config.json"):
        load_spec(folder)
    (folder / "config.json").write_text("[1]")
    with pytest.raises(FormatError, match="object"):
        load_spec(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ModelNotFound, match="config.json"):
        load_spec(folder)


def test_failed_load_closes_its_files(tmp_path, monkeypatch):
    from cygnet.architectures import registry

    opened = []

    def spy(path):
        opened.append(original(path))
        return opened[-1]

    original = registry.open_weights
    monkeypatch.setattr(registry, "open_weights", spy)
    with pytest.raises(WeightsError):
        load_spec(save(tmp_path, {**LLAMA, "num_hidden_layers": 3}))
    with pytest.raises(FormatError, match="closed"):
        opened[0]["model.norm.weight"].to_float32()


@pytest.mark.parametrize(
    "broken",
    [
        {"num_attention_heads": 0},
        {"num_attention_heads": "two"},
        {"hidden_size": None},
        {"hidden_size": [8]},
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": -1},
        {"num_hidden_layers": 2.5},
        {"num_key_value_heads": 3},
        {"rope_scaling": "linear"},
        {"rope_scaling": {"type": "linear", "factor": "x"}},
        {"head_dim": 3},
        {"head_dim": -4},
        {"partial_rotary_factor": 2.0},
        {"hidden_act": 7},
        {"layer_types": 3, "model_type": "mistral"},
        {"model_type": ["llama"]},
        {"architectures": 7},
        {"architectures": [7]},
        {"eos_token_id": "</s>"},
        {"sliding_window": "x", "model_type": "mistral"},
        {"num_attention_heads": 10**9},
        {"num_key_value_heads": [1]},
    ],
    ids=str,
)
def test_settings_that_make_no_model(broken):
    with pytest.raises((UnsupportedModel, WeightsError)):
        resolve({**LLAMA, **broken}, llama_tensors())


def test_token_ids_come_from_generation_settings_first():
    config = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "forced_eos_token_id": 2, "decoder_start_token_id": 5}
    alone = token_ids(config)
    assert (alone.bos, alone.eos, alone.pad, alone.decoder_start, alone.forced_eos) == (1, (2,), 0, 5, 2)
    both = token_ids(config, {"eos_token_id": [7, 8], "forced_bos_token_id": 9})
    assert (both.bos, both.eos, both.forced_bos, both.forced_eos) == (1, (7, 8), 9, None)


def test_decoder_starts_with_bos_where_nothing_else_is_given():
    assert token_ids({"bos_token_id": 1}, seq2seq=True).decoder_start == 1
    assert token_ids({"bos_token_id": 1}).decoder_start is None


def test_negative_ids_stand_for_none():
    assert token_ids({"pad_token_id": -1, "eos_token_id": [2, -1]}) == token_ids({"eos_token_id": 2})


def test_labels():
    assert labels({"id2label": {"1": "no", "0": "yes"}}) == ("yes", "no")
    assert labels({"num_labels": 3}) == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert labels({}) == ("LABEL_0", "LABEL_1")


def documented():
    """model_types in the table of docs/models.md."""
    text = (ROOT / "docs" / "models.md").read_text()
    return set(re.findall(r"`([a-z0-9_-]+)`", " ".join(line.split("|")[2] for line in text.splitlines() if line.startswith("| "))))


def model_types_with_test_rows():
    """model_types with a row of tiny models."""
    import sys

    sys.path.insert(0, str(ROOT / "tests" / "parity"))
    try:
        from marian_files import MARIAN
        from tiny_models import TINY, TORCH
    finally:
        sys.path.pop(0)
    return set(TINY) | set(TORCH) | set(MARIAN)


def test_every_family_has_a_registry_row_a_test_row_and_a_docs_row():
    modules = {path.stem for path in (ROOT / "python/cygnet/architectures/families").glob("*.py")} - {"__init__"}
    assert {row.partition(":")[0] for row in FAMILIES.values()} == modules
    assert model_types_with_test_rows() == set(FAMILIES)
    assert documented() == set(FAMILIES)
    assert list(FAMILIES) == sorted(FAMILIES)


def test_family_files_hold_data_only():
    for path in (ROOT / "python/cygnet/architectures/families").glob("*.py"):
        text = path.read_text()
        assert len(text.splitlines()) <= 150, path.name
        assert "import numpy" not in text, f"{path.name} computes"


def test_every_row_names_a_family():
    for model_type in {*FAMILIES, *ARCHITECTURES.values()}:
        assert callable(family_of(model_type).build)
