"""PyTorch checkpoints before 1.6: a stream of five pickles, then the storages one after another (torch/serialization.py, _legacy_save)."""

from cygnet.errors import FormatError
from cygnet.formats.dtypes import PLAIN_TYPES
from cygnet.formats.mapping import Mapping
from cygnet.formats.torch_tensors import tensors_of
from cygnet.formats.unpickle import unpickle
from cygnet.formats.weight_file import WeightFile

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
MAGIC_BYTES = MAGIC.to_bytes(10, "little")


def recognises(head):
    """Whether a file starts with the pickled magic number."""
    return head[:2] == b"\x80\x02" and MAGIC_BYTES in head[:16]


def read_torch_legacy(path):
    """Open one PyTorch stream checkpoint, without PyTorch and without running its pickles.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    WeightFile
        Contiguous tensors are views of the mapped file.

    Raises
    ------
    FormatError
        If the stream is damaged, big-endian, or its pickles ask for anything but tensors and containers.
    """
    mapping = Mapping(path)
    try:
        tensors = _read_tensors(mapping)
    except BaseException:
        mapping.close()
        raise
    return WeightFile("torch", [mapping.path], tensors, closers=[mapping.close])


def _read_tensors(mapping):
    path = mapping.path
    stream = mapping.stream()
    if unpickle(stream, f"{path}: first pickle") != MAGIC:
        raise FormatError(f"{path}: not a PyTorch file: it does not start with PyTorch's magic number")
    protocol = unpickle(stream, f"{path}: second pickle")
    if protocol != PROTOCOL:
        raise FormatError(f"{path}: another PyTorch stream protocol than {PROTOCOL}, which is not read")
    system = unpickle(stream, f"{path}: third pickle")
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise FormatError(f"{path}: the checkpoint is not marked little-endian; save it again on a little-endian machine")
    dtypes = {}
    checkpoint = unpickle(stream, f"{path}: the checkpoint", dtypes, file_size=mapping.size)
    keys = unpickle(stream, f"{path}: list of storages", dtypes, file_size=mapping.size)
    places = _place_storages(mapping, stream.tell(), keys, dtypes)

    def find_storage(key):
        if key not in places:
            raise FormatError(f"{path}: storage {key!r} is not in the file")
        start, nbytes = places[key]
        return (
            lambda offset, length: mapping.view(start + offset, length),
            lambda offset, length: mapping.release(start + offset, length),
            nbytes,
        )

    return tensors_of(checkpoint, str(path), find_storage, mapping.size)


def _place_storages(mapping, position, keys, dtypes):
    """{key: (start, nbytes)}: each storage is its number of elements (8 bytes) and the elements."""
    if not isinstance(keys, list) or not all(isinstance(key, str) and key in dtypes for key in keys) or len(set(keys)) != len(keys):
        raise FormatError(f"{mapping.path}: the list of storages does not fit the checkpoint")
    places = {}
    for key in keys:
        count = int.from_bytes(mapping.view(position, 8), "little")
        nbytes = count * PLAIN_TYPES[dtypes[key]].itemsize
        if nbytes > mapping.size - position - 8:
            raise FormatError(f"{mapping.path}: storage {key!r} of {nbytes} bytes does not fit the file; it is cut short")
        places[key] = position + 8, nbytes
        position += 8 + nbytes
    return places
