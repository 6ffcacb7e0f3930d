"""Families under random settings against transformers; CYGNET_VARIANTS=N tries N of each row instead of one of each family."""

import os

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import test_families as families  # noqa: E402
from tiny_models import TINY, make  # noqa: E402
from variants import FIXED, LONGEST, variant  # noqa: E402

from cygnet.errors import UnsupportedModel  # noqa: E402

pytestmark = pytest.mark.parity
MANY = int(os.environ.get("CYGNET_VARIANTS", "0"))
CASES = [
    (model_type, index, seed)
    for model_type, rows in TINY.items()
    if model_type not in FIXED
    for index in (range(len(rows)) if MANY else range(1))
    for seed in range(max(MANY, 1))
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_variant(case, tmp_path, monkeypatch):
    model_type, index, seed = case
    class_name, settings = TINY[model_type][index]
    changed = variant(model_type, class_name, settings, seed)
    monkeypatch.setattr(families, "LENGTHS", (1, 2, LONGEST))
    try:
        model = make(class_name, changed, tmp_path, seed=seed)
    except Exception as refusal:
        pytest.skip(f"transformers refuses these settings: {refusal}")
    try:
        run, spec = families.engine(tmp_path)
    except UnsupportedModel as refusal:
        assert "rotary positions of" in str(refusal), changed
        return
    assert families.check(run, spec, model) < families.TOLERANCE, changed
