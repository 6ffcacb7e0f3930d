"""The development set of conformance models through the NumPy reference: outputs, and hidden states layer by layer."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from cygnet.architectures.registry import load_spec
from cygnet.architectures.spec import Task
from cygnet.reference.model import ReferenceModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from reference_adapter import load  # noqa: E402

TOLERANCE = 2e-4
IMAGES = "debug.fwd_batch.hidden_"


def error(got, want):
    """Largest absolute difference, over the root mean square of what is wanted if that is above one."""
    want = np.asarray(want, np.float64)
    return float(np.abs(np.asarray(got) - want).max() / max(1.0, np.sqrt((want**2).mean())))


def states_of(output, prefix, golden):
    """Our states and the golden ones: of the embeddings, of each layer but the last, and of the end (behind the final norm, except ViT's)."""
    names = sorted((name for name in golden.files if name.startswith(prefix)), key=lambda name: int(name.rpartition("_")[2]))
    step = len(output.states) // (len(names) - 1) if len(names) > 1 else 1
    states = output.states[::step][: len(names) - 1]
    last = output.states[-1] if prefix == IMAGES else output.hidden
    return list(zip([*states, last], [golden[name] for name in names], strict=True))


def pytest_generate_tests(metafunc):
    root = Path(os.environ.get("CYGNET_CONFORMANCE", Path(__file__).resolve().parents[3] / "shared" / "conformance")) / "models"
    names = sorted(path.parent.name for path in root.glob("*/golden.npz")) if root.is_dir() else []
    metafunc.parametrize("name", names or [pytest.param("", marks=pytest.mark.skip("no conformance folder: set CYGNET_CONFORMANCE"))])


def test_hidden_states_layer_by_layer(conformance, name):
    folder = conformance / "models" / name
    golden = np.load(folder / "golden.npz")
    loaded = load_spec(folder)
    model = ReferenceModel(loaded.spec, loaded.weights)
    if loaded.spec.task is Task.IMAGE_CLASSIFICATION:
        outputs = model.forward(list(golden["fwd_batch.pixel_values"]))
        pairs = [pair for i, output in enumerate(outputs) for pair in rows(output, IMAGES, golden, i, slice(None))]
    elif not any(key.startswith("debug.") for key in golden.files):
        pytest.skip("no states are stored")
    else:
        mask = golden["fwd_right.attention_mask"].astype(bool)
        ids = [row[keep].tolist() for row, keep in zip(golden["fwd_right.input_ids"], mask, strict=True)]
        seq2seq = loaded.spec.decoder is not None and loaded.spec.encoder is not None
        to = [row.tolist() for row in golden["fwd_right.decoder_input_ids"]] if seq2seq else None
        pairs = []
        for i, output in enumerate(model.forward(ids, decoder_ids=to)):
            if seq2seq:
                pairs += rows(output.encoder, "debug.fwd_right.encoder_hidden_", golden, i, mask[i])
                pairs += rows(output, "debug.fwd_right.decoder_hidden_", golden, i, slice(None))
            else:
                pairs += rows(output, "debug.fwd_right.hidden_", golden, i, mask[i])
    assert len(pairs) > 2
    assert max(error(got, want) for got, want in pairs) < TOLERANCE


def rows(output, prefix, golden, index, keep):
    """Pairs of states of one sequence."""
    return [(got, want[index][keep]) for got, want in states_of(output, prefix, golden)]


def test_outputs(conformance, name):
    folder = conformance / "models" / name
    golden = np.load(folder / "golden.npz")
    model = load(folder)
    for case in json.loads((folder / "golden.json").read_text())["cases"]:
        if case["method"] == "generate":
            continue
        arguments = {key: golden[value[1:]] if isinstance(value, str) and value.startswith("@") else value for key, value in case["args"].items()}
        result = getattr(model, case["method"])(**arguments)
        for key, entry in case["expect"].items():
            got = result if case["method"] in ("score", "encode") else result[key]
            keep = golden[entry["mask"]].astype(bool) if "mask" in entry else slice(None)
            assert error(np.asarray(got)[keep], golden[entry["key"]][keep]) < TOLERANCE, (case["id"], key)
