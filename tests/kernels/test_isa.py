"""The choice of the instruction set."""

import os
import subprocess
import sys

import pytest

from cygnet._core import _kernels
from cygnet.errors import OptionError


def in_new_process(isa):
    code = "from cygnet._core import _kernels; print(_kernels.isa_name())"
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, "CYGNET_ISA": isa}, capture_output=True, text=True)


def test_scalar_is_always_there_and_last():
    assert _kernels.isa_names()[-1] == "scalar"


def test_without_a_wish_the_best_one_is_chosen():
    assert in_new_process("").stdout.strip() == _kernels.isa_names()[0]


@pytest.mark.parametrize("isa", [*_kernels.isa_names(), " SCALAR "])
def test_environment_forces_a_table(isa):
    assert in_new_process(isa).stdout.strip() == isa.strip().lower()


@pytest.mark.parametrize("name", ["sse9", "neon" if "neon" not in _kernels.isa_names() else "avx2"])
def test_a_table_that_cannot_run_is_refused_at_import(name):
    result = in_new_process(name)
    assert result.returncode != 0
    assert f"CYGNET_ISA '{name}' cannot run here" in result.stderr
    assert ", ".join(_kernels.isa_names()) in result.stderr


def test_an_unknown_name_is_refused():
    with pytest.raises(OptionError, match="scalar"):
        _kernels.isa_width("avx1024")


def test_width_is_a_power_of_two(isa):
    assert _kernels.isa_width(isa) in (4, 8, 16)
