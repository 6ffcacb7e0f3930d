"""Damaged tokenizer files of every kind: a tokenizer that works, or a TokenizerError that names the file; hostile_files.py tries as many as you like.

CYGNET_HOSTILE_FILES sets how many of each kind.
"""

import os
import sys

import pytest
from hostile_files import KINDS, run

CASES = int(os.environ.get("CYGNET_HOSTILE_FILES", "150"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the memory of a forked process")
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(kind):
    assert run(kind, CASES) == []
