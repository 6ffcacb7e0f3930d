"""GGUF files of every architecture against the transformers model they were written from."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("gguf")

from gguf_files import GGUF, VARIANTS, write  # noqa: E402
from test_families import RUNNERS, TOLERANCE, check  # noqa: E402
from tiny_models import make  # noqa: E402

from cygnet.architectures.gguf import ARCHITECTURES  # noqa: E402

pytestmark = pytest.mark.parity


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("name", GGUF)
def test_gguf(name, runner, tmp_path):
    class_name, settings = GGUF[name]
    model = make(class_name, settings, tmp_path / "model", seed=3)
    write(name, model, tmp_path / "model.gguf")
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # the format has no place for it
    run, spec = RUNNERS[runner](tmp_path / "model.gguf")
    assert check(run, spec, model) < TOLERANCE


def test_every_architecture_has_a_file():
    assert set(ARCHITECTURES) == {VARIANTS.get(name, name) for name in GGUF}
