"""Flax checkpoints: msgpack maps whose arrays are extension 1 (flax/serialization.py). Needs the extra ``cygnet[flax]``."""

from functools import partial

import numpy as np

from cygnet.errors import FormatError, MissingDependency
from cygnet.formats.dtypes import NAME_OF_NUMPY
from cygnet.formats.mapping import Mapping
from cygnet.formats.tensor import MAX_RANK, Tensor, stored_bytes
from cygnet.formats.weight_file import WeightFile

ARRAY, COMPLEX, SCALAR = 1, 2, 3
CHUNKED = "__msgpack_chunked_array__"
JAX_DTYPES = {
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
} | {dtype.name: name for dtype, name in NAME_OF_NUMPY.items()}


def read_flax(path):
    """Open one Flax msgpack file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    WeightFile
        Nested names are joined with dots. The bytes are copied out of the file once, as msgpack has it.

    Raises
    ------
    MissingDependency
        If msgpack is not installed.
    FormatError
        If the file is damaged.
    """
    try:
        import msgpack
    except ImportError:
        raise MissingDependency('reading Flax checkpoints needs msgpack: pip install "cygnet[flax]"') from None
    mapping = Mapping(path)
    try:
        tree = msgpack.unpackb(mapping.view(0, mapping.size).data, ext_hook=partial(_array, msgpack), raw=False, strict_map_key=False)
        tensors = {}
        _collect(tree, "", tensors)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise FormatError(f"{path}: the msgpack data is damaged: {error or type(error).__name__}") from None
    finally:
        mapping.close()
    if not tensors:
        raise FormatError(f"{path}: the file holds no arrays by name")
    return WeightFile("flax", [mapping.path], tensors)


def _array(msgpack, code, data):
    """(dtype, shape, bytes) of an extension value."""
    if code not in (ARRAY, SCALAR):
        raise FormatError(f"msgpack extension {code} is not read (arrays and scalars are)")
    shape, name, content = msgpack.unpackb(data, raw=False)
    name = name.decode("utf-8") if isinstance(name, bytes) else name
    if not isinstance(name, str) or name not in JAX_DTYPES:
        raise FormatError(f"an array has a type other than {', '.join(JAX_DTYPES)}")
    dtype, shape = JAX_DTYPES[name], _shape(shape)
    if not isinstance(content, bytes) or len(content) != stored_bytes(dtype, shape):
        raise FormatError(f"an array of type {name} and shape {shape} does not have {stored_bytes(dtype, shape)} bytes")
    return dtype, shape, np.frombuffer(content, np.uint8)


def _shape(sizes):
    if not isinstance(sizes, (list, tuple)) or len(sizes) > MAX_RANK or not all(type(size) is int and 0 <= size < 2**63 for size in sizes):
        raise FormatError(f"an array has no shape of at most {MAX_RANK} sizes")
    return tuple(sizes)


def _collect(node, prefix, tensors):
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and CHUNKED in value:
            value = _join_chunks(name, value)
        if isinstance(value, tuple):
            dtype, shape, content = value
            tensors[name] = Tensor(name, dtype, shape, lambda content=content: content)
        else:
            _collect(value, name + ".", tensors)


def _join_chunks(name, node):
    """An array above Flax's chunk size: flat pieces by number, and the shape."""
    shape = _shape([node["shape"][str(axis)] for axis in range(len(node["shape"]))])
    pieces = [node["chunks"][str(index)] for index in range(len(node["chunks"]))]
    content = np.concatenate([piece[2] for piece in pieces])
    dtype = pieces[0][0]
    if any(piece[0] != dtype for piece in pieces) or content.size != stored_bytes(dtype, shape):
        raise FormatError(f"the chunks of array {name!r} do not add up to its shape {shape}")
    return dtype, shape, content
