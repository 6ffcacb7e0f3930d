"""Fixtures of the kernel tests: every instruction set this CPU has, and arrays between pages that may not be touched."""

import ctypes
import mmap
import sys

import numpy as np
import pytest

from cygnet._core import _kernels


@pytest.fixture(params=_kernels.isa_names())
def isa(request):
    return request.param


@pytest.fixture
def sizes(isa):
    """Lengths around the edges of a vector and of the unrolled loops, and large odd ones."""
    w = _kernels.isa_width(isa)
    return sorted({0, 1, w - 1, w, w + 1, 2 * w, 4 * w - 1, 4 * w, 4 * w + 1, 517, 4099})


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
