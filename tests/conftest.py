"""Fixtures that every test may use."""

import ctypes
import mmap
import os
import sys
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def conformance_folder():
    """The folder of conformance files (CYGNET_CONFORMANCE, or ../shared/conformance beside the repository), or None."""
    folder = Path(os.environ.get("CYGNET_CONFORMANCE", REPOSITORY.parent / "shared" / "conformance"))
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def conformance():
    """The folder of conformance files; skips without it."""
    folder = conformance_folder()
    if folder is None:
        pytest.skip("no conformance folder: set CYGNET_CONFORMANCE")
    return folder


@pytest.fixture(params=["end", "start"])
def guarded(request):
    """A function that copies an array so that its last byte (or its first) borders on a page without access."""
    if sys.platform == "win32":
        pytest.skip("needs mprotect")
    protect = ctypes.CDLL(None).mprotect

    def copy(array):
        page = mmap.PAGESIZE
        length = -(-max(array.nbytes, 1) // page) * page
        memory = np.frombuffer(mmap.mmap(-1, length + 2 * page), np.uint8)
        for start in (0, page + length):
            assert protect(ctypes.c_void_p(memory.ctypes.data + start), page, 0) == 0
        offset = page + (length - array.nbytes if request.param == "end" else 0)
        inside = memory[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
        inside[...] = array
        return inside

    return copy
