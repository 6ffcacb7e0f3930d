"""PyTorch checkpoints since 1.6: a zip with one pickle and a stored member a storage (https://pytorch.org/docs/stable/notes/serialization.html)."""

from functools import partial

from cygnet.errors import FormatError
from cygnet.formats.torch_tensors import tensors_of
from cygnet.formats.unpickle import unpickle
from cygnet.formats.weight_file import WeightFile
from cygnet.formats.zip_members import ZipMembers

MAX_PICKLE = 256 << 20
MAX_DEFLATED_PICKLE = 16 << 20  # of a pickle that is longer than its file; PyTorch does not deflate


def read_torch_zip(path):
    """Open one PyTorch zip archive, without PyTorch and without running its pickle.

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
        If the archive is damaged, big-endian, or its pickle asks for anything but tensors and containers.
    """
    members = ZipMembers(path)
    try:
        return WeightFile("torch", [members.path], _read_tensors(members), closers=[members.close])
    except BaseException:
        members.close()
        raise


def _read_tensors(members):
    path = members.path
    pickles = [name for name in members if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise FormatError(f"{path}: a PyTorch archive has one data.pkl, this zip has {len(pickles)}")
    pickle_name = pickles[0]
    root = pickle_name.removesuffix("data.pkl")
    size = members.size(pickle_name)
    limit = min(MAX_PICKLE, max(MAX_DEFLATED_PICKLE, members.mapping.size))
    if size > limit:
        raise FormatError(f"{path}: {pickle_name} is {size} bytes long, the limit for a file of {members.mapping.size} bytes is {limit}")
    order = root + "byteorder"
    if order in members and bytes(members.view(order, 0, min(members.size(order), 16))) != b"little":
        raise FormatError(f"{path}: the checkpoint is big-endian, which is not read; save it again on a little-endian machine")

    def find_storage(key):
        name = f"{root}data/{key}"
        if name not in members:
            raise FormatError(f"{path}: storage {name!r} is not in the archive")
        return partial(members.view, name), partial(members.release, name), members.size(name)

    checkpoint = unpickle(bytes(members.view(pickle_name, 0, size)), f"{path}: {pickle_name}", file_size=members.mapping.size)
    return tensors_of(checkpoint, str(path), find_storage, _unpacked_size(members))


def _unpacked_size(members):
    return sum(members.size(name) for name in members)
