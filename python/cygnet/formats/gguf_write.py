"""Writing GGUF version 3: for converting models, and for tests that need the same model in every format."""

import struct
from pathlib import Path

import numpy as np

from cygnet.errors import FormatError
from cygnet.files import replaced
from cygnet.formats.dtypes import NAME_OF_NUMPY, PLAIN_TYPES
from cygnet.formats.gguf import ARRAY, DEFAULT_ALIGNMENT, MAX_DIMS, SCALARS, STRING
from cygnet.formats.quant_types import GGML_TYPES
from cygnet.formats.tensor import Tensor

GGML_ID = {quant.name: ggml_id for ggml_id, quant in GGML_TYPES.items()}
VALUE_TYPE = {np.dtype(code): number for number, code in SCALARS.items()}


def write_gguf(path, tensors, metadata):
    """Write one GGUF file; it appears under its name only when complete.

    Parameters
    ----------
    path : str or Path
    tensors : Mapping of str to Tensor or array
        Matrices are (out, in), as everywhere. Block types come as `Tensor`.
    metadata : Mapping of str to value
        str, bool, int (stored as uint32, else int64), float (stored as float32), NumPy scalars and 1-D arrays in their own type, lists of str.
        ``general.alignment`` is honoured.

    Raises
    ------
    FormatError
        If a value or a tensor cannot be stored.

    Examples
    --------
    >>> import tempfile
    >>> from cygnet.formats.gguf import read_gguf
    >>> path = Path(tempfile.mkdtemp()) / "model.gguf"
    >>> write_gguf(path, {"w": np.zeros((2, 3), np.float32)}, {"general.architecture": "llama"})
    >>> read_gguf(path)["w"]
    Tensor('w', F32, (2, 3))
    """
    path = Path(path)
    alignment = int(metadata.get("general.alignment", DEFAULT_ALIGNMENT))
    stored = {name: _storable(path, name, value) for name, value in tensors.items()}
    head = [b"GGUF", struct.pack("<IQQ", 3, len(stored), len(metadata))]
    for key, value in metadata.items():
        head += [_string(key), _value(path, key, value)]
    position = 0
    for name, tensor in stored.items():
        head += [_string(name), struct.pack(f"<I{len(tensor.shape)}QIQ", len(tensor.shape), *tensor.shape[::-1], GGML_ID[tensor.dtype], position)]
        position += tensor.nbytes + -tensor.nbytes % alignment
    text = b"".join(head)
    with replaced(path) as file:
        file.write(text + bytes(-len(text) % alignment))
        for tensor in stored.values():
            file.write(tensor.raw().data)
            file.write(bytes(-tensor.nbytes % alignment))


def _string(text):
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def _value(path, key, value):
    """A metadata value with its type in front."""
    if isinstance(value, (str, bytes)):
        return struct.pack("<I", STRING) + _string(value)
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, bytes)) for item in value):
        return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_string, value))
    if isinstance(value, float) and not isinstance(value, np.generic):
        value = np.float32(value)
    elif isinstance(value, int) and not isinstance(value, (bool, np.generic)):
        value = np.uint32(value) if 0 <= value < 2**32 else np.int64(value)
    array = np.asarray(value)
    kind = VALUE_TYPE.get(array.dtype.newbyteorder("<"))
    if kind is None or array.ndim > 1:
        raise FormatError(f"{path}: metadata {key!r} is {value!r}, which GGUF does not hold")
    prefix = struct.pack("<IIQ", ARRAY, kind, array.size) if array.ndim else struct.pack("<I", kind)
    return prefix + array.astype(array.dtype.newbyteorder("<")).tobytes()


def _storable(path, name, value):
    if not isinstance(value, Tensor):
        array = np.asarray(value)
        dtype = NAME_OF_NUMPY.get(array.dtype.newbyteorder("<"), str(array.dtype))
        little = PLAIN_TYPES[dtype].numpy if dtype in PLAIN_TYPES else None
        value = Tensor(name, dtype, array.shape, lambda: np.ascontiguousarray(array, little).reshape(-1).view(np.uint8)) if little else None
    if value is None or value.dtype not in GGML_ID or len(value.shape) > MAX_DIMS:
        raise FormatError(f"{path}: tensor {name!r} has a type or a number of dimensions that GGUF does not hold")
    return value
