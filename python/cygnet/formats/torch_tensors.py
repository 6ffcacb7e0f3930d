"""What both PyTorch containers share: from an unpickled checkpoint to named tensors over mapped storages."""

from functools import partial
from math import prod

import numpy as np

from cygnet.errors import FormatError
from cygnet.formats.dtypes import PLAIN_TYPES
from cygnet.formats.tensor import Tensor
from cygnet.formats.unpickle import StridedTensor

# Keys under which training scripts keep the weights beside optimizer and bookkeeping.
WRAPPERS = ("state_dict", "model_state_dict", "model", "module")
MAX_DEPTH = 8


def tensors_of(checkpoint, where, find_storage, file_size):
    """The tensors of a checkpoint by their dotted names.

    Parameters
    ----------
    checkpoint : object
        As `unpickle` gives it: a state dict, or one under a key of `WRAPPERS`.
    where : str
        The file, for messages.
    find_storage : callable
        Storage key -> (view(offset, nbytes), release(offset, nbytes), bytes the file holds of it).
    file_size : int
        No tensor may claim more bytes than that (zero strides could otherwise claim any number).

    Returns
    -------
    dict of str to Tensor

    Raises
    ------
    FormatError
        If there are no tensors, or one leaves its storage.
    """
    found = {}
    try:
        _collect(_unwrap(checkpoint), "", found, set())
    except RecursionError:
        raise FormatError(f"{where}: the checkpoint is nested too deeply") from None
    if not found:
        raise FormatError(f"{where}: the checkpoint holds no tensors by name (a state dict is expected, alone or under one of {', '.join(WRAPPERS)})")
    return {name: _tensor(name, strided, where, find_storage, file_size) for name, strided in found.items()}


def _unwrap(checkpoint):
    for _ in range(MAX_DEPTH):
        if isinstance(checkpoint, dict):
            checkpoint = next((checkpoint[key] for key in WRAPPERS if isinstance(checkpoint.get(key), dict)), checkpoint)
    return checkpoint


def _collect(node, prefix, found, seen):
    """Dotted names; whatever is no tensor (counters, settings) is not a weight and is left out.

    A dict that turns up again is not walked again: a small pickle can nest shared ones into endless names.
    """
    if not isinstance(node, dict) or id(node) in seen:
        return
    seen.add(id(node))
    for key, value in node.items():
        name = f"{prefix}{key}"
        if isinstance(value, StridedTensor):
            found[name] = value
        else:
            _collect(value, name + ".", found, seen)


def _tensor(name, strided, where, find_storage, file_size):
    dtype, storage, offset, shape, strides = strided
    itemsize = PLAIN_TYPES[dtype].itemsize
    view, release, available = find_storage(storage.key)
    start = storage.first * PLAIN_TYPES[storage.dtype].itemsize
    nbytes = storage.count * PLAIN_TYPES[storage.dtype].itemsize
    if start + nbytes > available:
        raise FormatError(f"{where}: tensor {name!r} needs {start + nbytes} bytes of storage {storage.key!r}, which holds {available}")
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if 0 not in shape and (last + 1) * itemsize > nbytes:
        raise FormatError(f"{where}: tensor {name!r} reaches element {last}, outside its storage {storage.key!r} of {nbytes // itemsize} elements")
    if prod(shape) * itemsize > file_size:
        raise FormatError(f"{where}: tensor {name!r} of shape {shape} would take {prod(shape) * itemsize} bytes, more than the whole file")
    begin = start + offset * itemsize
    if 0 in shape:
        return Tensor(name, dtype, shape, partial(np.empty, 0, np.uint8))
    if _is_contiguous(shape, strides):
        span = prod(shape) * itemsize
        return Tensor(name, dtype, shape, partial(view, begin, span), partial(release, begin, span))
    span = (last - offset + 1) * itemsize
    return Tensor(name, dtype, shape, partial(_gather, view, begin, span, shape, strides, itemsize), partial(release, begin, span))


def _is_contiguous(shape, strides):
    expected = 1
    for size, stride in zip(shape[::-1], strides[::-1], strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _gather(view, begin, span, shape, strides, itemsize):
    """The bytes of a strided view in row-major order."""
    elements = view(begin, span).view(f"u{itemsize}")
    # The stride of an axis of one entry means nothing and may be any number.
    steps = [stride * itemsize if size > 1 else 0 for size, stride in zip(shape, strides, strict=True)]
    strided = np.lib.stride_tricks.as_strided(elements, shape, steps, writeable=False)
    return np.ascontiguousarray(strided).reshape(-1).view(np.uint8)
