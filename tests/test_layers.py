"""Imports run one way: a layer may use those before it and never one after it."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "cygnet"

# In the order of the data's way; each may import itself, the entries before it that are named here, and cygnet._core.
ALLOWED = {
    "errors": set(),
    "files": {"errors"},
    "background": set(),
    "locks": set(),
    "records": set(),
    "blas_threads": set(),
    "cpu_count": {"errors"},
    "system_info": {"errors", "cpu_count"},
    "formats": {"errors", "files"},
    "hub": {"errors", "files", "formats"},
    "reference": {"errors", "architectures"},
    "functional": {"errors", "reference", "architectures"},
    "architectures": {"errors", "records", "files", "formats", "reference"},
    "tokenizers": {"errors", "records", "files", "cpu_count", "formats", "hub"},
    "packing": {"errors", "records", "formats", "architectures", "reference"},
    "position_tables": {"errors", "architectures", "reference"},
    "engine_sides": {"errors", "architectures", "packing", "position_tables"},
    "convolved": {"packing"},
    "engine": {"errors", "background", "locks", "cpu_count", "architectures", "packing", "position_tables", "engine_sides", "convolved"},
    "generation": {"errors"},
    "models": {
        "errors",
        "records",
        "blas_threads",
        "files",
        "cpu_count",
        "hub",
        "formats",
        "architectures",
        "tokenizers",
        "packing",
        "engine",
        "generation",
        "reference",
    },  # fmt: skip
    "cli": None,
    "server": None,
    "integrations": None,
    "__init__": None,
    "__main__": None,
}
FILES = sorted(PACKAGE.rglob("*.py"))


def layer_of(path):
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(path):
    """Layers of cygnet that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "cygnet" else [node.module]
        for name in names:
            parts = name.split(".")
            if parts[0] == "cygnet" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_one_way(path):
    layer = layer_of(path)
    if layer == "_core":
        return
    assert layer in ALLOWED, f"{layer} has no place in the order of layers: give it one here"
    allowed = ALLOWED[layer]
    if allowed is None:
        return
    wrong = sorted({name for name in imported(path) if name not in allowed | {layer, "_core"}})
    assert not wrong, f"{path.name} of {layer} imports {wrong}"


def test_blas_and_openmp_have_one_home():
    pyext = PACKAGE.parent.parent / "pyext"
    for path in pyext.glob("*.pyx"):
        text = path.read_text()
        assert ("cython_blas" in text) <= (path.stem == "_blas"), path.name
        assert ("openmp" in text.replace("OpenMP", "")) <= (path.stem == "_threads"), path.name
    for path in (pyext.parent / "csrc").rglob("*.[ch]"):
        text = path.read_text()
        assert "Python.h" not in text and "omp.h" not in text and "cblas" not in text, path.name
