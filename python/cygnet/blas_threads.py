"""NumPy's import, kept from taking the cores that a model is about to be packed on."""

import os
import sys

# OpenBLAS, which NumPy's wheels carry, starts a thread a core; each spins 2^26 cycles before it sleeps. Of the power of two it takes from here, the
# least that still bridges the pause between two calls of a program that computes with NumPy.
VARIABLE, SOON = "OPENBLAS_THREAD_TIMEOUT", "20"


def import_numpy():
    """Imports NumPy such that idle threads of its BLAS sleep soon; a setting of the user's stands, and so does a NumPy that is there already."""
    if "numpy" in sys.modules or VARIABLE in os.environ:
        return
    os.environ[VARIABLE] = SOON
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[VARIABLE]
