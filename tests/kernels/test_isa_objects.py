"""AVX instructions stay in the tables made for them, and the script that says so finds one that does not."""

import importlib.util
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from cygnet._core import _kernels

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_isa_objects.py"

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not all(map(shutil.which, ("objdump", "readelf"))) or not _kernels.__file__.endswith(".so"),
    reason="needs an x86-64 ELF module, objdump and readelf",
)


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("check_isa_objects", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_vector_instruction_outside_the_tables(tool):
    assert any(source == "isa_avx2.c" for _, source in tool.functions(_kernels.__file__))
    assert list(tool.misplaced(_kernels.__file__)) == []


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
@pytest.mark.parametrize("flag", ["-mavx", "-mavx512f"])
def test_a_stray_is_found(tool, flag, tmp_path):
    source, module = tmp_path / "stray.c", tmp_path / "stray.so"
    source.write_text("void twice(float *x) { for (int i = 0; i < 64; i++) x[i] *= 2; }\n")
    subprocess.run(["gcc", "-O3", flag, "-shared", "-fPIC", str(source), "-o", str(module)], check=True)
    assert list(tool.misplaced(str(module)))
