"""NumPy .npz archives, without pickles (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html)."""

import ast
from functools import partial
from math import prod

import numpy as np

from cygnet.errors import FormatError
from cygnet.formats.dtypes import NAME_OF_NUMPY, PLAIN_TYPES
from cygnet.formats.tensor import MAX_RANK, Tensor
from cygnet.formats.weight_file import WeightFile
from cygnet.formats.zip_members import ZipMembers

MAGIC = b"\x93NUMPY"
MAX_HEADER = 10_000


def read_npz(path):
    """Open one .npz archive.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    WeightFile
        Arrays of an archive written by ``numpy.savez`` are views of the mapped file; those of ``savez_compressed`` are unpacked when read.

    Raises
    ------
    FormatError
        If the archive or a header is damaged, or an array holds something else than numbers (objects are pickles and never read).
    """
    members = ZipMembers(path)
    try:
        tensors = {name.removesuffix(".npy"): _read_entry(members, name) for name in members}
    except BaseException:
        members.close()
        raise
    return WeightFile("npz", [members.path], tensors, closers=[members.close])


def _read_entry(members, member):
    where = f"{members.path}: array {member.removesuffix('.npy')!r}"
    size = members.size(member)
    prefix = bytes(members.view(member, 0, min(size, 12)))
    if len(prefix) < 12 or prefix[:6] != MAGIC or prefix[6] not in (1, 2, 3):
        raise FormatError(f"{where} is not a .npy array of version 1, 2 or 3")
    begin = 10 if prefix[6] == 1 else 12
    length = int.from_bytes(prefix[8:begin], "little")
    if length > MAX_HEADER or begin + length > size:
        raise FormatError(f"{where} has a header of {length} bytes; at most {MAX_HEADER}, within its {size} bytes, are read")
    dtype, shape, fortran = _parse_header(where, bytes(members.view(member, begin, length)))
    name = NAME_OF_NUMPY.get(dtype.newbyteorder("<"))
    if name is None:
        raise FormatError(f"{where} has the type {dtype.str}; numbers are read, objects, strings and records are not")
    nbytes, start = prod(shape) * PLAIN_TYPES[name].itemsize, begin + length
    if start + nbytes != size:
        raise FormatError(f"{where}: {dtype} of shape {shape} takes {nbytes} bytes, the archive holds {size - start}")
    release = partial(members.release, member, start, nbytes)
    read = partial(members.view, member, start, nbytes)
    if fortran and len(shape) > 1 or dtype.byteorder == ">":
        read = partial(_reorder, read, dtype, shape, fortran)
    return Tensor(member.removesuffix(".npy"), name, shape, read, release)


def _parse_header(where, text):
    """(dtype, shape, fortran order) of the Python literal that a .npy header is."""
    try:
        header = ast.literal_eval(text.decode("latin-1").strip())
        descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
        dtype = np.dtype(descr) if isinstance(descr, str) else None
    except (ValueError, SyntaxError, TypeError, LookupError, RecursionError, MemoryError) as error:
        raise FormatError(f"{where} has a damaged header: {error}") from None
    natural = isinstance(shape, tuple) and all(type(size) is int and 0 <= size < 2**63 for size in shape)
    if not natural or len(shape) > MAX_RANK or type(fortran) is not bool:
        raise FormatError(f"{where} has a damaged header: shape {shape!r}, fortran_order {fortran!r}")
    if dtype is None:
        raise FormatError(f"{where} is an array of records, which is not read")
    return dtype, shape, fortran


def _reorder(read, dtype, shape, fortran):
    """Row-major little-endian bytes of an array stored otherwise."""
    array = read().view(dtype).reshape(shape, order="F" if fortran else "C")
    return np.ascontiguousarray(array, dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
