"""The development set of the conformance folder, through the public classes."""

import importlib.util
import sysconfig
from pathlib import Path

import conformance_adapter
import pytest

from tests.conftest import conformance_folder

FOLDER = conformance_folder()
MODELS = sorted(path.parent.relative_to(FOLDER / "models").as_posix() for path in FOLDER.glob("models/**/golden.json")) if FOLDER else []
# Models that this engine does not read (Marian's own files), and a golden of another part.
ELSEWHERE = ("real/translate_enpt", "real/translate_pten", "real/splade")


@pytest.fixture(scope="module")
def checker():
    spec = importlib.util.spec_from_file_location("check_models", FOLDER / "check_models.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(FOLDER is None, reason="no conformance folder: set CYGNET_CONFORMANCE")
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n.startswith("real/") else n for n in MODELS if n not in ELSEWHERE])
def test_model(checker, name):
    packages = sysconfig.get_paths()["purelib"]
    result = checker.run_model(str(FOLDER / "models" / name), conformance_adapter.load, packages)
    if result["status"] == "SKIP":
        pytest.skip(result["why"])
    assert result["status"] == "PASS", result["why"]


@pytest.mark.skipif(FOLDER is None, reason="no conformance folder: set CYGNET_CONFORMANCE")
def test_operations(checker):
    results = dict(checker.run_blocks(str(Path(FOLDER) / "models"), conformance_adapter.block))
    assert results and {name: r["why"] for name, r in results.items() if r["status"] != "PASS"} == {}
