"""GGUF versions 2 and 3, little-endian (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).

Strings that are not UTF-8 decode with ``surrogateescape``: nothing is lost, ``text.encode("utf-8", "surrogateescape")`` gives the bytes back,
and `Metadata.raw` gives them directly.
"""

import struct
from collections.abc import Mapping as AbstractMapping
from functools import partial
from math import prod
from pathlib import Path

import numpy as np

from cygnet._core._gguf import Strings
from cygnet.errors import FormatError
from cygnet.formats.mapping import Mapping
from cygnet.formats.quant_types import GGML_TYPES, UNREAD_GGML_TYPES
from cygnet.formats.tensor import Tensor, stored_bytes
from cygnet.formats.weight_file import WeightFile

MAX_NAME = 65535
MAX_DIMS = 4
MAX_ELEMENTS = 2**63 - 1
DEFAULT_ALIGNMENT = 32
# The least a key with its value, and a tensor's entry, can take: bounds the counts before anything is read or allocated.
LEAST_KEY_BYTES, LEAST_TENSOR_BYTES = 8 + 4 + 1, 8 + 4 + 4 + 8

SCALARS = {0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8"}
STRING, ARRAY = 8, 9


def recognises(head):
    """Whether the first bytes of a file are GGUF's."""
    return head[:4] == b"GGUF"


class Metadata(AbstractMapping):
    """Keys and values of a GGUF file; arrays of strings are decoded when first asked for.

    Numbers come as int, float and bool, strings as str, arrays of numbers as read-only NumPy arrays, arrays of strings as lists of str.
    """

    def __init__(self, values):
        self._values = values
        self._decoded = {}

    def __getitem__(self, key):
        if key in self._decoded:
            return self._decoded[key]
        value = self._values[key]
        if isinstance(value, Strings):
            value = self._decoded[key] = value.decoded()
        return value

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __repr__(self):
        return f"<GGUF metadata: {len(self)} keys>"

    def raw(self, key):
        """The bytes of a string, or of each string of an array, as the file holds them.

        Raises
        ------
        KeyError
            If there is no such key.
        FormatError
            If the value is no string and no array of strings.
        """
        value = self._values[key]
        if isinstance(value, Strings):
            return value.raw()
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        raise FormatError(f"metadata {key!r} holds no strings")

    def in_place(self, key):
        """An array of strings as it lies in the file, a `Strings`; None if the value is of another kind, or there is none."""
        value = self._values.get(key)
        return value if isinstance(value, Strings) else None


class _Cursor:
    """Reads one value after another from the head of the file; every read is checked against its end."""

    def __init__(self, mapping):
        self.path, self.size = mapping.path, mapping.size
        self.data = mapping.view(0, mapping.size)
        self.buffer = self.data.data
        self.offset = 0

    def fail(self, what):
        raise FormatError(f"{self.path}: {what}")

    def advance(self, nbytes, what):
        """Offset of the next `nbytes` bytes, which the file must hold."""
        start = self.offset
        if nbytes > self.size - start:
            self.fail(f"{what} needs {nbytes} bytes at offset {start}, the file has {self.size - start} left")
        self.offset += nbytes
        return start

    def number(self, code, what):
        return struct.unpack_from("<" + code, self.buffer, self.advance(struct.calcsize("<" + code), what))[0]

    def name(self, what):
        """A key or a tensor's name: a string that is neither empty nor endless."""
        length = int.from_bytes(self.buffer[self.offset : self.offset + 8], "little")
        if not 0 < length <= MAX_NAME:
            self.fail(f"{what} is {length} bytes long, 1 to {MAX_NAME} are allowed")
        return self.string(what)

    def string(self, what):
        length = self.number("Q", f"the length of {what}")
        start = self.advance(length, what)
        return bytes(self.buffer[start : start + length]).decode("utf-8", "surrogateescape")


def read_gguf(path):
    """Open one GGUF file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    WeightFile
        ``metadata`` is a `Metadata`. Shapes are reversed against the file's, so that a matrix is (out, in).

    Raises
    ------
    FormatError
        For another version or byte order, and for any count, length, type, shape or offset that does not fit the file.
    """
    mapping = Mapping(path)
    try:
        cursor = _Cursor(mapping)
        tensor_count, key_count = _read_preamble(cursor)
        metadata = _read_metadata(cursor, key_count)
        alignment = _alignment(cursor, metadata)
        entries = _read_entries(cursor, tensor_count, alignment)
        start = cursor.offset + -cursor.offset % alignment
        _check_layout(cursor, entries, start)
    except BaseException:
        cursor = metadata = None
        mapping.close()
        raise
    tensors = {
        name: Tensor(name, dtype, shape, partial(mapping.view, start + offset, nbytes), partial(mapping.release, start + offset, nbytes))
        for name, (dtype, shape, offset, nbytes) in entries.items()
    }
    return WeightFile("gguf", [Path(path)], tensors, metadata, [mapping.close])


def _read_preamble(cursor):
    """Check magic and version; (tensor count, key count), both possible for a file of this size."""
    magic = bytes(cursor.buffer[:4])
    if magic != b"GGUF":
        cursor.fail(f"not a GGUF file: it starts with {magic!r}, not b'GGUF'")
    cursor.advance(4, "the magic number")
    version = cursor.number("I", "the version")
    if version and not version & 0xFFFF:
        cursor.fail("the file is big-endian GGUF; only little-endian files are read (convert it with gguf's gguf-convert-endian)")
    if version not in (2, 3):
        cursor.fail(f"GGUF version {version} is not read; versions 2 and 3 are (convert the model anew)")
    tensor_count = cursor.number("Q", "the tensor count")
    key_count = cursor.number("Q", "the key count")
    left = cursor.size - cursor.offset
    if key_count > left // LEAST_KEY_BYTES:
        cursor.fail(f"key count {key_count} does not fit the {left} bytes that follow")
    if tensor_count > left // LEAST_TENSOR_BYTES:
        cursor.fail(f"tensor count {tensor_count} does not fit the {left} bytes that follow")
    return tensor_count, key_count


def _read_metadata(cursor, count):
    values = {}
    for index in range(count):
        key = cursor.name(f"metadata key {index}")
        if key in values:
            cursor.fail(f"duplicate metadata key {key!r}")
        what = f"metadata {key!r}"
        kind = cursor.number("I", f"the type of {what}")
        if kind == STRING:
            values[key] = cursor.string(what)
        elif kind == ARRAY:
            values[key] = _read_array(cursor, what)
        else:
            values[key] = _numbers(cursor, kind, 1, what).item()
    return Metadata(values)


def _read_array(cursor, what):
    kind = cursor.number("I", f"the element type of {what}")
    count = cursor.number("Q", f"the length of {what}")
    if kind == ARRAY:
        cursor.fail(f"{what} is an array of arrays, which is not read")
    if kind != STRING:
        return _numbers(cursor, kind, count, what)
    left = cursor.size - cursor.offset
    if count > left // 8:
        cursor.fail(f"{what} has {count} strings, which do not fit the {left} bytes that follow")
    strings = Strings(cursor.data, cursor.offset, count)
    if strings.nbytes < 0:
        cursor.fail(f"string {-1 - strings.nbytes} of {what} does not lie inside the file")
    cursor.offset += strings.nbytes
    return strings


def _numbers(cursor, kind, count, what):
    """`count` numbers as an array of their own (the view into the file may be unaligned and would keep it open)."""
    if kind not in SCALARS:
        cursor.fail(f"{what} has the unknown value type {kind}")
    dtype = np.dtype(SCALARS[kind])
    start = cursor.advance(count * dtype.itemsize, what)
    values = cursor.data[start : cursor.offset]
    # Any nonzero byte is true; NumPy's bool must be 0 or 1.
    values = values != 0 if kind == 7 else values.view(dtype).copy()
    values.flags.writeable = False
    return values


def _alignment(cursor, metadata):
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or alignment <= 0 or alignment & alignment - 1:
        cursor.fail(f"general.alignment must be a power of two, not {str(alignment)[:40]!r}")
    return alignment


def _read_entries(cursor, count, alignment):
    """{name: (dtype, shape, offset, nbytes)} in file order."""
    entries = {}
    for index in range(count):
        name = cursor.name(f"the name of tensor {index}")
        if name in entries:
            cursor.fail(f"duplicate tensor {name!r}")
        what = f"tensor {name!r}"
        dims = cursor.number("I", f"the dimensions of {what}")
        if dims > MAX_DIMS:
            cursor.fail(f"{what} has {dims} dimensions, at most {MAX_DIMS} are allowed")
        shape = tuple(cursor.number("Q", f"the shape of {what}") for _ in range(dims))[::-1]
        kind = cursor.number("I", f"the type of {what}")
        offset = cursor.number("Q", f"the offset of {what}")
        dtype = _check_type(cursor, what, kind, shape)
        if offset % alignment:
            cursor.fail(f"{what} starts at offset {offset}, which is no multiple of the alignment {alignment}")
        entries[name] = dtype, shape, offset, stored_bytes(dtype, shape)
    return entries


def _check_type(cursor, what, kind, shape):
    """Name of the element type, once it is known that the shape fits it."""
    quant = GGML_TYPES.get(kind)
    if quant is None:
        name = UNREAD_GGML_TYPES.get(kind)
        known = ", ".join(known.name for known in GGML_TYPES.values())
        cursor.fail(f"{what} has type {name} ({kind}), which is not read" if name else f"{what} has the unknown type {kind}; known are {known}")
    if prod(size for size in shape if size) > MAX_ELEMENTS:
        cursor.fail(f"{what} has more than 2**63 - 1 elements: {shape}")
    if (shape[-1] if shape else 1) % quant.block_size:
        cursor.fail(f"{what} has rows of {shape[-1] if shape else 1} weights, no multiple of the {quant.block_size} of a {quant.name} block")
    return quant.name


def _check_layout(cursor, entries, start):
    """Tensors may be padded apart but neither overlap nor leave the file."""
    available = cursor.size - start
    position, before = 0, None
    for name, (_, _, offset, nbytes) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if offset + nbytes > available:
            cursor.fail(f"tensor {name!r} ends at byte {offset + nbytes} of {max(available, 0)} bytes of tensor data; the file is cut short")
        if offset < position:
            cursor.fail(f"tensor {name!r} overlaps {before!r}")
        position, before = offset + nbytes, name
