"""safetensors: a JSON header and one block of bytes, read strictly (https://github.com/huggingface/safetensors#format)."""

import json
from functools import partial
from math import prod
from pathlib import Path

import numpy as np

from cygnet.errors import FormatError
from cygnet.files import replaced
from cygnet.formats.dtypes import NAME_OF_NUMPY, PLAIN_TYPES
from cygnet.formats.mapping import Mapping
from cygnet.formats.quant_types import BLOCK_TYPES
from cygnet.formats.tensor import MAX_RANK, Tensor, stored_bytes
from cygnet.formats.weight_file import WeightFile

MAX_HEADER = 100_000_000
MAX_ELEMENTS = 2**63 - 1
ALIGNMENT = 64
# Metadata of files that hold GGUF blocks as bytes: a JSON object, tensor name to [type, shape].
BLOCKS_KEY = "cygnet.blocks"


def recognises(head):
    """Whether the first bytes of a file are those of a safetensors header."""
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= MAX_HEADER


def read_safetensors(path):
    """Open one safetensors file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    WeightFile
        ``metadata`` is the file's ``__metadata__``, strings by strings.

    Raises
    ------
    FormatError
        If anything differs from the specification: header, duplicate names, types, shapes, gaps, overlaps, length.
    """
    mapping = Mapping(path)
    try:
        header, start = _read_header(mapping)
        metadata = _check_metadata(path, header.pop("__metadata__", {}))
        entries = {name: _check_entry(path, name, entry) for name, entry in header.items()}
        _check_layout(path, entries, mapping.size - start)
        _name_blocks(path, entries, metadata.get(BLOCKS_KEY))
    except BaseException:
        mapping.close()
        raise
    tensors = {
        name: Tensor(name, dtype, shape, partial(mapping.view, start + begin, end - begin), partial(mapping.release, start + begin, end - begin))
        for name, (dtype, shape, begin, end) in entries.items()
    }
    return WeightFile("safetensors", [mapping.path], tensors, metadata, [mapping.close])


def _read_header(mapping):
    """The header as a dict, and where the tensors' bytes start."""
    path = mapping.path
    if mapping.size < 8:
        raise FormatError(f"{path}: {mapping.size} bytes are too few for a safetensors file (8 bytes of header length come first)")
    length = int.from_bytes(mapping.view(0, 8), "little")
    if length > MAX_HEADER:
        raise FormatError(f"{path}: header length {length} is above the limit of {MAX_HEADER} bytes")
    if length > mapping.size - 8:
        raise FormatError(f"{path}: header length {length} is more than the {mapping.size - 8} bytes that follow; the file is cut short")
    text = bytes(mapping.view(8, length))
    if not text.startswith(b"{"):
        raise FormatError(f"{path}: the header is not a JSON object (it must start with '{{')")
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique_keys)
    except RecursionError:
        raise FormatError(f"{path}: the header is nested too deeply") from None
    except ValueError as error:
        raise FormatError(f"{path}: the header is not valid JSON: {error}") from None
    return header, 8 + length


def _unique_keys(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        seen = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"duplicate key {twice!r}")
    return result


def _check_metadata(path, metadata):
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise FormatError(f"{path}: __metadata__ must map strings to strings")
    return metadata


def _natural(value):
    return type(value) is int and 0 <= value <= MAX_ELEMENTS


def _check_entry(path, name, entry):
    """(dtype, shape, begin, end) of one header entry, each value checked."""
    where = f"{path}: tensor {name!r}"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise FormatError(f"{where}: the name is not valid Unicode") from None
    if not isinstance(entry, dict):
        raise FormatError(f"{where}: the header entry must be an object with dtype, shape and data_offsets")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in PLAIN_TYPES:
        raise FormatError(f"{where}: unknown dtype {_short(dtype)}; known are {', '.join(PLAIN_TYPES)}")
    if not isinstance(shape, list) or len(shape) > MAX_RANK or not all(map(_natural, shape)):
        raise FormatError(f"{where}: shape must be a list of at most {MAX_RANK} integers from 0 to 2**63 - 1, not {_short(shape)}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_natural, offsets)) or offsets[0] > offsets[1]:
        raise FormatError(f"{where}: data_offsets must be two integers [begin, end] with begin <= end, not {_short(offsets)}")
    if prod(size for size in shape if size) > MAX_ELEMENTS:
        raise FormatError(f"{where}: shape {_short(shape)} has more than 2**63 - 1 elements")
    if stored_bytes(dtype, shape) != offsets[1] - offsets[0]:
        raise FormatError(
            f"{where}: {dtype} of shape {_short(shape)} takes {stored_bytes(dtype, shape)} bytes, data_offsets cover {offsets[1] - offsets[0]}"
        )
    return dtype, tuple(shape), *offsets


def _name_blocks(path, entries, blocks):
    """Gives the tensors that hold GGUF blocks their type and shape; `blocks` is what the metadata says of them."""
    if blocks is None:
        return
    try:
        blocks = json.loads(blocks)
        for name, (dtype, shape) in blocks.items():
            stored, _, begin, end = entries[name]
            whole = all(map(_natural, shape)) and shape[-1] % BLOCK_TYPES[dtype].block_size == 0
            if stored != "U8" or not whole or stored_bytes(dtype, shape) != end - begin:
                raise ValueError(f"tensor {name!r} cannot be {_short(dtype)} of shape {_short(shape)}")
            entries[name] = dtype, tuple(shape), begin, end
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise FormatError(f"{path}: metadata {BLOCKS_KEY!r} does not fit the tensors: {_short(error)}") from None


def _short(value):
    try:
        text = repr(value)
    except RecursionError:
        text = type(value).__name__
    return text if len(text) <= 80 else text[:77] + "..."


def _check_layout(path, entries, available):
    """The ranges, sorted, must cover all bytes after the header: no gap, no overlap, nothing left over."""
    position = 0
    for name, (_, _, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if begin != position:
            kind = "overlaps the tensor before it" if begin < position else "leaves a gap"
            raise FormatError(f"{path}: tensor {name!r} {kind}: data_offsets begin at {begin}, {position} was expected")
        if end > available:
            raise FormatError(f"{path}: tensor {name!r} ends at byte {end} of {available}; the file is cut short")
        position = end
    if position != available:
        raise FormatError(f"{path}: {available - position} bytes after the last tensor belong to none")


def write_safetensors(path, tensors, metadata=None):
    """Write tensors to one file; it appears under its name only when complete.

    Parameters
    ----------
    path : str or Path
    tensors : Mapping of str to Tensor or array
        A `Tensor` is copied byte for byte, whatever its type; GGUF blocks go in as bytes, and the metadata says what they are.
    metadata : Mapping of str to str, optional

    Raises
    ------
    FormatError
        If a type or a name cannot be stored.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> write_safetensors(path, {"bias": np.zeros(3, np.float32)}, {"format": "np"})
    >>> read_safetensors(path)["bias"]
    Tensor('bias', F32, (3,))
    """
    path = Path(path)
    blocks = {name: [value.dtype, list(value.shape)] for name, value in tensors.items() if isinstance(value, Tensor) and value.is_block_type}
    if blocks:
        metadata = {**(metadata or {}), BLOCKS_KEY: json.dumps(blocks)}
        tensors = {name: _as_bytes(value) if name in blocks else value for name, value in tensors.items()}
    stored = {name: _storable(path, name, value) for name, value in tensors.items()}
    # Wide types first keeps every tensor aligned to its own size without gaps, which the format forbids.
    order = sorted(stored, key=lambda name: -PLAIN_TYPES[stored[name][0]].itemsize)
    header, position = {}, 0
    if metadata:
        header["__metadata__"] = _check_metadata(path, dict(metadata))
    for name in order:
        dtype, shape, _ = stored[name]
        end = position + stored_bytes(dtype, shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    if len(text) > MAX_HEADER:
        raise FormatError(f"{path}: the header would take {len(text)} bytes, more than the format's limit of {MAX_HEADER}")
    with replaced(path) as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in order:
            file.write(stored[name][2]().data)


def _as_bytes(tensor):
    """A tensor of GGUF blocks as bytes, a row of blocks in each row."""
    row = stored_bytes(tensor.dtype, tensor.shape[-1:])
    return Tensor(tensor.name, "U8", (*tensor.shape[:-1], row), tensor.raw, tensor.release)


def _storable(path, name, value):
    """(dtype, shape, function that gives the bytes) of a tensor to be written."""
    if not isinstance(name, str) or name == "__metadata__":
        raise FormatError(f"{path}: {name!r} cannot be the name of a tensor")
    if isinstance(value, Tensor):
        if value.dtype not in PLAIN_TYPES:
            raise FormatError(f"{path}: tensor {name!r} is {value.dtype}, which safetensors does not hold")
        return value.dtype, value.shape, value.raw
    array = np.asarray(value)
    dtype = NAME_OF_NUMPY.get(array.dtype.newbyteorder("<"))
    if dtype is None:
        raise FormatError(f"{path}: tensor {name!r} has type {array.dtype}, which safetensors does not hold")
    little = PLAIN_TYPES[dtype].numpy
    return dtype, array.shape, lambda: np.ascontiguousarray(array, little).reshape(-1).view(np.uint8)
