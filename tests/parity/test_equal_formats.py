"""One random model in every kind of file gives equal logits."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from gguf_files import write  # noqa: E402
from test_families import RUNNERS  # noqa: E402
from tiny_models import ODD, make  # noqa: E402

pytestmark = pytest.mark.parity
IDS = [[5, 9, 31, 7, 12], [44]]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """(model, folder with its safetensors file)."""
    folder = tmp_path_factory.mktemp("original")
    return make("LlamaForCausalLM", dict(ODD, num_key_value_heads=2), folder, seed=5), folder


def save_gguf(model, folder):
    pytest.importorskip("gguf")
    write("llama", model, folder / "model.gguf")


def save_sharded(model, folder):
    model.save_pretrained(folder, max_shard_size="20KB")
    assert (folder / "model.safetensors.index.json").exists()


def save_bin_sharded(model, folder):
    state = sorted(model.state_dict().items())
    shards = {"pytorch_model-00001-of-00002.bin": dict(state[:9]), "pytorch_model-00002-of-00002.bin": dict(state[9:])}
    for name, part in shards.items():
        torch.save(part, folder / name)
    index = {"metadata": {}, "weight_map": {key: name for name, part in shards.items() for key in part}}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))


SAVERS = {
    "pt": lambda model, folder: torch.save(model.state_dict(), folder / "model.pt"),
    "bin": lambda model, folder: torch.save(model.state_dict(), folder / "pytorch_model.bin"),
    "legacy-bin": lambda model, folder: torch.save(model.state_dict(), folder / "pytorch_model.bin", _use_new_zipfile_serialization=False),
    "bin-sharded": save_bin_sharded,
    "npz": lambda model, folder: np.savez(folder / "model.npz", **{name: value.numpy() for name, value in model.state_dict().items()}),
    "safetensors-sharded": save_sharded,
    "gguf": save_gguf,
}


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("kind", SAVERS)
def test_equal_logits(kind, runner, original, tmp_path):
    model, folder = original
    if kind != "gguf":
        (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    SAVERS[kind](model, tmp_path)
    want, _ = RUNNERS[runner](folder)
    got, _ = RUNNERS[runner](tmp_path)
    for one, other in zip(got(IDS), want(IDS), strict=True):
        # GGUF keeps epsilons as float32.
        assert np.allclose(one.logits, other.logits, rtol=0, atol=1e-6) if kind == "gguf" else np.array_equal(one.logits, other.logits)
