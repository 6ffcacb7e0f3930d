"""Kernel tables on NumPy arrays: the choice of the instruction set, and each kernel as a Python function with an `isa` argument."""

import os

from cygnet.errors import OptionError


cdef extern from "cyg_cpu.h" nogil:
    const char *const *cyg_isa_names()
    int cyg_isa_usable(const char *name)
    const cyg_kernels *cyg_isa_table(const char *name)


def isa_names():
    """Names of the instruction sets that this build has and this CPU and operating system can run, best first."""
    cdef const char *const *name = cyg_isa_names()
    usable = []
    while name[0] != NULL:
        if cyg_isa_usable(name[0]):
            usable.append(name[0].decode())
        name += 1
    return usable


cdef const cyg_kernels *table_named(name, source) except NULL:
    cdef const cyg_kernels *table
    encoded = str(name).strip().lower().encode()
    table = cyg_isa_table(encoded)
    if table == NULL:
        raise OptionError(f"{source} {name!r} cannot run here; this build and CPU can run: {', '.join(isa_names())}")
    return table


cdef const cyg_kernels *choose() except NULL:
    name = os.environ.get("CYGNET_ISA", "").strip()
    return table_named(name, "CYGNET_ISA") if name else cyg_isa_table(NULL)


cdef const cyg_kernels *chosen = choose()


cdef const cyg_kernels *kernels() noexcept nogil:
    return chosen


cdef const cyg_kernels *kernels_of(isa) except NULL:
    return chosen if isa is None else table_named(isa, "isa")


def isa_name():
    """Name of the instruction set chosen at import."""
    return chosen.name.decode()


def isa_width(isa=None):
    """Floats in a vector of an instruction set."""
    return kernels_of(isa).width
