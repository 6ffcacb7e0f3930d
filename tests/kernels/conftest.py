"""Fixtures of the kernel tests: every instruction set this CPU has, and the sizes at the edges of its loops."""

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
