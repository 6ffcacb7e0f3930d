"""Marian's own model files: its binary format (.bin) and its .npz, which carry their settings as a YAML text among the tensors.

A binary file is: version (1) and number of entries as u64; four u64 an entry (bytes of its name, type, number of dimensions, bytes of its data); the
names, each with a zero behind it; the dimensions as i32; a u64 with the number of bytes that follow as padding; the data
(https://github.com/marian-nmt/marian-dev).
"""

import re
import struct
from functools import partial
from math import prod

import numpy as np

from cygnet.errors import FormatError
from cygnet.formats.mapping import Mapping
from cygnet.formats.tensor import MAX_RANK, Tensor
from cygnet.formats.weight_file import WeightFile

VERSION = 1
HEADER, ENTRY = struct.Struct("<QQ"), struct.Struct("<4Q")
MAX_ENTRIES, MAX_NAME = 1 << 20, 4096
SETTINGS = "special:model.yml"
# Type numbers: kind (signed 0x100, unsigned 0x200, float 0x400, integers with one multiplier 0x4000) and bytes an element.
PLAIN = {
    **{0x101: "I8", 0x102: "I16", 0x104: "I32", 0x108: "I64", 0x201: "U8", 0x202: "U16", 0x204: "U32", 0x208: "U64"},
    **{0x402: "F16", 0x404: "F32", 0x408: "F64"},
}
QUANTISED = {0x4101: np.dtype("i1"), 0x4102: np.dtype("<i2")}
MULTIPLIER_BYTES = 4


def recognises(head):
    """Whether the first bytes of a file are those of Marian's binary format: it has no signature, but its first entry tells."""
    if len(head) < HEADER.size + ENTRY.size:
        return False
    version, count = HEADER.unpack_from(head)
    name_bytes, kind, rank, _ = ENTRY.unpack_from(head, HEADER.size)
    known = kind in PLAIN or kind in QUANTISED
    return version == VERSION and 0 < count <= MAX_ENTRIES and 1 < name_bytes <= MAX_NAME and known and rank <= MAX_RANK


def read_marian(path):
    """Open one binary model.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    WeightFile
        Matrices are (in, out) as Marian has them, embeddings (words, features); integers with a multiplier are given as the float32 they stand for.
        Its metadata are the settings the model was trained with.

    Raises
    ------
    FormatError
        If the file is damaged or holds a type that is not known, such as matrices packed for one processor.
    """
    mapping = Mapping(path)
    try:
        tensors = {}
        for name, kind, shape, start, nbytes in _entries(mapping):
            if name in tensors:
                raise FormatError(f"{path}: tensor {name!r} stands twice in the file")
            tensors[name] = _tensor(mapping, name, kind, shape, start, nbytes)
        settings = _settings(path, tensors.pop(SETTINGS, None))
    except BaseException:
        mapping.close()
        raise
    return WeightFile("marian", [mapping.path], tensors, settings, closers=[mapping.close])


def from_npz(weights):
    """The same of an opened .npz: `weights` itself where it is not Marian's."""
    if SETTINGS not in weights:
        return weights
    tensors = {name: tensor for name, tensor in weights.items() if name != SETTINGS}
    return WeightFile("marian", weights.files, tensors, _settings(weights.files[0], weights[SETTINGS]), closers=[weights.close])


def _entries(mapping):
    """(name, type, shape, offset of the data, its bytes) of every entry, checked against the file."""

    def take(at, nbytes, what):
        if nbytes > mapping.size - at:
            raise FormatError(f"{mapping.path}: {what} needs {nbytes} bytes at offset {at}, the file has {mapping.size - at} left")
        return at + nbytes

    at = take(0, HEADER.size, "the header")
    version, count = HEADER.unpack(mapping.view(0, HEADER.size))
    if version != VERSION or count > MAX_ENTRIES:
        raise FormatError(f"{mapping.path}: version {version} with {count} tensors; version {VERSION} with at most {MAX_ENTRIES} is read")
    end = take(at, count * ENTRY.size, "the list of tensors")
    entries = list(ENTRY.iter_unpack(mapping.view(at, count * ENTRY.size)))
    names, shapes, at = [], [], end
    for name_bytes, _, _, _ in entries:
        end = take(at, name_bytes, "a name")
        if not 1 <= name_bytes <= MAX_NAME:
            raise FormatError(f"{mapping.path}: a name of {name_bytes} bytes; 1 to {MAX_NAME} are read")
        names.append(bytes(mapping.view(at, name_bytes - 1)).decode("utf-8", "replace"))
        at = end
    for name, (_, _, rank, _) in zip(names, entries, strict=True):
        if rank > MAX_RANK:
            raise FormatError(f"{mapping.path}: tensor {name!r} has {rank} dimensions, at most {MAX_RANK} are read")
        end = take(at, 4 * rank, f"the shape of {name!r}")
        shapes.append(struct.unpack(f"<{rank}i", mapping.view(at, 4 * rank)))
        at = end
    end = take(at, 8, "the padding")
    at = take(end, struct.unpack("<Q", mapping.view(at, 8))[0], "the padding")
    for name, shape, (_, kind, _, nbytes) in zip(names, shapes, entries, strict=True):
        end = take(at, nbytes, f"tensor {name!r}")
        yield name, kind, shape, at, nbytes
        at = end


def _tensor(mapping, name, kind, shape, start, nbytes):
    where = f"{mapping.path}: tensor {name!r}"
    if min(shape, default=1) < 0:
        raise FormatError(f"{where} has the shape {shape}")
    if kind in PLAIN:
        tensor = Tensor(name, PLAIN[kind], shape, lambda: mapping.view(start, tensor.nbytes), partial(mapping.release, start, nbytes))
        needed = tensor.nbytes
    elif kind in QUANTISED:
        needed = prod(shape) * QUANTISED[kind].itemsize
        # A product reads embeddings as they lie; every other matrix is stored the other way round.
        turned = "Wemb" not in name and len(shape) == 2
        needed += MULTIPLIER_BYTES
        read = partial(_dequantise, mapping, QUANTISED[kind], shape, start, turned)
        tensor = Tensor(name, "F32", shape, read, partial(mapping.release, start, nbytes))
    else:
        raise FormatError(f"{where} has the type {kind:#x}, which is not read; convert the model for any processor, or use its .npz")
    if needed > nbytes:
        raise FormatError(f"{where} of shape {shape} takes {needed} bytes, the file says {nbytes}")
    return tensor


def _dequantise(mapping, dtype, shape, start, turned):
    """Bytes of the float32 values: integer / multiplier."""
    count = prod(shape)
    stored = mapping.view(start, count * dtype.itemsize).view(dtype)
    (multiplier,) = struct.unpack("<f", mapping.view(start + count * dtype.itemsize, MULTIPLIER_BYTES))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = stored.astype(np.float32) / np.float32(multiplier)
    if turned:
        values = values.reshape(shape[::-1]).T
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


SCALAR = re.compile(r"(?P<key>[\w-]+): *(?P<value>.*)")
ITEM = re.compile(r" *- +(?P<value>.*)")


def _settings(path, tensor):
    """The keys of the YAML text: scalars, and lists of scalars in either style, are all that Marian writes there."""
    if tensor is None:
        raise FormatError(f"{path}: no {SETTINGS!r} in the file: it does not say what it is")
    text = bytes(tensor.raw()).rstrip(b"\0").decode("utf-8", "replace")
    settings, key = {}, None
    for line in text.splitlines():
        scalar, item = SCALAR.fullmatch(line.rstrip()), ITEM.fullmatch(line.rstrip())
        if scalar:
            key = scalar["key"]
            settings[key] = _value(scalar["value"])
        elif item and key is not None and (settings[key] is None or isinstance(settings[key], list)):
            settings[key] = [*(settings[key] or ()), _value(item["value"])]
        elif line.strip():
            raise FormatError(f"{path}: {SETTINGS!r} has a line that is not understood: {line[:80]!r}")
    return settings


def _value(text):
    """A YAML scalar or a list of them in brackets."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [_value(part) for part in text[1:-1].split(",") if part.strip()]
    if text[:1] in ("'", '"') and text[-1:] == text[0] and len(text) > 1:
        return text[1:-1]
    named = {"": None, "~": None, "null": None, "true": True, "false": False}
    if text in named:
        return named[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
