"""Every processor golden of the conformance set."""

import json

import numpy as np
import pytest
from conformance_generation import logits


def test_logits_goldens(conformance):
    with open(conformance / "models" / "blocks.json") as file:
        cases = [case for case in json.load(file)["cases"] if case["op"] == "logits"]
    arrays = np.load(conformance / "models" / "blocks.npz")
    assert len(cases) > 30
    for case in cases:
        inputs = {name: arrays[key] for name, key in case["inputs"].items()}
        found = logits(inputs, case["params"])
        for name, key in case["outputs"].items():
            wanted = arrays[key]
            assert np.array_equal(np.isneginf(found[name]), np.isneginf(wanted)), case
            finite = np.isfinite(wanted)
            assert found[name][finite] == pytest.approx(wanted[finite], abs=1e-5), case
