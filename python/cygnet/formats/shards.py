"""A model in several files: an index names the file of each tensor (``*.index.json`` of safetensors and PyTorch folders)."""

import json
from pathlib import Path, PurePosixPath, PureWindowsPath

from cygnet.errors import FormatError
from cygnet.formats.weight_file import WeightFile


def read_sharded(index, read):
    """Open all files that an index names, as one.

    Parameters
    ----------
    index : str or Path
        The index file, JSON with a ``weight_map`` of tensor names to file names.
    read : callable
        Opens one shard: path -> WeightFile.

    Returns
    -------
    WeightFile
        Exactly the tensors that the index lists, in its order. Files that it does not name are not looked at.

    Raises
    ------
    FormatError
        If the index is damaged, a shard is missing or lies outside the folder, or a tensor is not in the shard the index names.
    """
    index = Path(index)
    weight_map = _read_index(index)
    shard_names = sorted(set(weight_map.values()))
    for shard_name in shard_names:
        _check_name(index, shard_name)
    missing = [shard_name for shard_name in shard_names if not (index.parent / shard_name).is_file()]
    if missing:
        raise FormatError(f"{index}: {len(missing)} of {len(shard_names)} shards are missing: {', '.join(missing)}; download the model again")
    shards = {}
    try:
        for shard_name in shard_names:
            shards[shard_name] = read(index.parent / shard_name)
        tensors = {name: _find(index, name, shard_name, shards[shard_name]) for name, shard_name in weight_map.items()}
    except BaseException:
        for shard in shards.values():
            shard.close()
        raise
    opened = list(shards.values())
    metadata = {key: value for shard in opened for key, value in shard.metadata.items()}
    return WeightFile(opened[0].kind, [shard.files[0] for shard in opened], tensors, metadata, [shard.close for shard in opened])


def _read_index(path):
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{path}: the index is not readable JSON: {error}") from None
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict) or not weight_map or not all(isinstance(value, str) for value in weight_map.values()):
        raise FormatError(f"{path}: weight_map must be an object that maps tensor names to file names")
    return weight_map


def _check_name(index, shard_name):
    # Lexical on purpose: in a hub cache the shards are links to files elsewhere.
    posix, windows = PurePosixPath(shard_name), PureWindowsPath(shard_name)
    if posix.is_absolute() or windows.anchor or ".." in posix.parts or ".." in windows.parts or not posix.name:
        raise FormatError(f"{index}: weight_map names {shard_name!r}, which lies outside the model's folder")


def _find(index, name, shard_name, shard):
    if name not in shard:
        raise FormatError(f"{index}: tensor {name!r} is listed in {shard_name!r}, which does not hold it")
    return shard[name]
