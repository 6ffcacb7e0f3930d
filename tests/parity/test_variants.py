"""Families under random settings against transformers; CYGNET_VARIANTS=N tries N of each row instead of one of each family."""

import json
import os

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import test_families as families  # noqa: E402
from tiny_models import TINY, make  # noqa: E402
from variants import FIXED, LONGEST, older, variant  # noqa: E402

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


# GPT-NeoX calls the share of each head by another name in old files.
@pytest.mark.parametrize("model_type", [name for name in TINY if name != "gpt_neox"])
def test_older_settings(model_type, tmp_path):
    class_name, settings = TINY[model_type][0]
    make(class_name, settings, tmp_path, seed=3)
    model_class, path = getattr(transformers, class_name), tmp_path / "config.json"
    path.write_text(json.dumps(older(json.loads(path.read_text()), model_class.config_class().to_dict())))
    model = model_class.from_pretrained(tmp_path, attn_implementation="eager", dtype=torch.float32).eval()
    run, spec = families.engine(tmp_path)
    assert families.check(run, spec, model) < families.TOLERANCE
