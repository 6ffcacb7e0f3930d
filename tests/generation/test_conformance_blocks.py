"""Every golden of the conformance set that is about choosing tokens."""

import json

import numpy as np
import pytest

from ..conformance_generation import beam_search, logits


@pytest.fixture(scope="module")
def cases(conformance):
    """(params, inputs, outputs) of each case, by operation."""
    with open(conformance / "models" / "blocks.json") as file:
        described = json.load(file)["cases"]
    arrays = np.load(conformance / "models" / "blocks.npz")
    found = {}
    for case in described:
        inputs, outputs = ({name: arrays[key] for name, key in case[kind].items()} for kind in ("inputs", "outputs"))
        found.setdefault(case["op"], []).append((case["params"], inputs, outputs))
    return found


def test_logits(cases):
    assert len(cases["logits"]) >= 40
    for params, inputs, outputs in cases["logits"]:
        found = logits(inputs, params)
        for name, wanted in outputs.items():
            assert np.array_equal(np.isneginf(found[name]), np.isneginf(wanted)), params
            finite = np.isfinite(wanted)
            assert found[name][finite] == pytest.approx(wanted[finite], abs=1e-5), params


def test_beam_search(cases):
    assert len(cases["beam_search"]) >= 10
    for params, inputs, outputs in cases["beam_search"]:
        found = beam_search(inputs, params)
        assert np.array_equal(found["ids"], outputs["ids"]), params
        assert found["scores"] == pytest.approx(outputs["scores"], abs=1e-5), params
