"""Keras and TensorFlow weights in HDF5 (.h5). Needs the extra ``cygnet[keras]``."""

from contextlib import ExitStack
from functools import partial
from math import prod

import numpy as np

from cygnet.errors import FormatError, MissingDependency
from cygnet.formats.dtypes import NAME_OF_NUMPY
from cygnet.formats.mapping import Mapping
from cygnet.formats.tensor import Tensor
from cygnet.formats.weight_file import WeightFile

SIGNATURE = b"\x89HDF\r\n\x1a\n"
# Where a whole saved model keeps its weights, beside the optimizer's.
MODEL_GROUP = "model_weights"


def recognises(head):
    """Whether the first bytes of a file are HDF5's."""
    return head.startswith(SIGNATURE)


def read_keras(path):
    """Open one HDF5 file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    WeightFile
        Tensors by the path of their dataset, such as ``bert/encoder/dense/kernel:0``; in a whole saved model only its weights.
        Contiguous datasets are views of the mapped file, others are read by h5py when asked for.

    Raises
    ------
    MissingDependency
        If h5py is not installed.
    FormatError
        If the file is damaged, or a dataset's data lies in another file.
    """
    try:
        import h5py
    except ImportError:
        raise MissingDependency('reading Keras and TensorFlow weights needs h5py: pip install "cygnet[keras]"') from None
    mapping = Mapping(path)
    with ExitStack() as stack:
        stack.callback(mapping.close)
        try:
            file = stack.enter_context(h5py.File(path, "r"))
            tensors = _collect(h5py, mapping, file[MODEL_GROUP] if MODEL_GROUP in file else file)
        except FormatError:
            raise
        except (OSError, RuntimeError, ValueError, TypeError, LookupError) as error:
            raise FormatError(f"{path}: the HDF5 file is damaged: {error}") from None
        if not tensors:
            raise FormatError(f"{path}: the HDF5 file holds no datasets")
        return WeightFile("keras", [mapping.path], tensors, closers=[stack.pop_all().close])


def _collect(h5py, mapping, root):
    tensors = {}

    def add(name, node):
        if isinstance(node, h5py.Dataset):
            tensors[name] = _tensor(mapping, name, node)

    # Visits hard links only: nothing outside this file is reached.
    root.visititems(add)
    return tensors


def _tensor(mapping, name, dataset):
    where = f"{mapping.path}: dataset {name!r}"
    if dataset.external or dataset.is_virtual:
        raise FormatError(f"{where} keeps its data in another file, which is refused")
    dtype = dataset.dtype
    stored = NAME_OF_NUMPY.get(dtype.newbyteorder("<"))
    if stored is None or dataset.shape is None:
        raise FormatError(f"{where} has the type {dtype}; numbers are read, strings and records are not")
    nbytes, offset = prod(dataset.shape) * dtype.itemsize, dataset.id.get_offset()
    if offset is not None and dtype.byteorder != ">":
        mapping.view(offset, nbytes)
        return Tensor(name, stored, dataset.shape, partial(mapping.view, offset, nbytes), partial(mapping.release, offset, nbytes))
    return Tensor(name, stored, dataset.shape, partial(_read_dataset, dataset))


def _read_dataset(dataset):
    array = np.ascontiguousarray(dataset[()], dataset.dtype.newbyteorder("<"))
    return array.reshape(-1).view(np.uint8)
