"""A model in several files: by an index that names the file of each tensor (safetensors, PyTorch), or by numbered names (GGUF)."""

import re
from contextlib import ExitStack
from pathlib import Path, PurePosixPath, PureWindowsPath

from cygnet.errors import FormatError
from cygnet.files import read_json
from cygnet.formats.weight_file import WeightFile

SPLIT_NAME = re.compile(r"(?P<base>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")


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
    with ExitStack() as stack:
        shards = {shard_name: stack.enter_context(read(index.parent / shard_name)) for shard_name in shard_names}
        tensors = {name: _find(index, name, shard_name, shards[shard_name]) for name, shard_name in weight_map.items()}
        opened = list(shards.values())
        metadata = {key: value for shard in opened for key, value in shard.metadata.items()}
        return WeightFile(opened[0].kind, [shard.files[0] for shard in opened], tensors, metadata, [stack.pop_all().close])


def read_split_gguf(part, read):
    """Open all files of a split GGUF model, as one.

    Parameters
    ----------
    part : WeightFile
        Any of the files, opened; its metadata has ``split.count``. It is closed if this fails.
    read : callable
        Opens one file: path -> WeightFile.

    Returns
    -------
    WeightFile
        All tensors, with the metadata of the first file.

    Raises
    ------
    FormatError
        If a file is missing, misnamed or out of order, or two files hold the same tensor.
    """
    with ExitStack() as stack:
        stack.enter_context(part)
        path, count = part.files[0], part.metadata["split.count"]
        match = SPLIT_NAME.fullmatch(path.name)
        if match is None or int(match["count"]) != count:
            raise FormatError(f"{path}: split.count is {count}, so its name must end in -NNNNN-of-{count:05}.gguf")
        paths = [path.with_name(f"{match['base']}-{number:05}-of-{match['count']}.gguf") for number in range(1, count + 1)]
        missing = [other.name for other in paths if not other.is_file()]
        if missing:
            raise FormatError(f"{path}: {len(missing)} of {count} parts are missing: {', '.join(missing[:10])}; download the model again")
        parts = [part if other == path else stack.enter_context(read(other)) for other in paths]
        tensors = {}
        for number, opened in enumerate(parts):
            if opened.metadata.get("split.no") != number:
                raise FormatError(f"{paths[number]}: split.no is {opened.metadata.get('split.no')}, not {number}")
            twice = tensors.keys() & opened.keys()
            if twice:
                raise FormatError(f"{paths[number]}: tensor {min(twice)!r} is in an earlier part too")
            tensors |= opened
        return WeightFile("gguf", paths, tensors, parts[0].metadata, [stack.pop_all().close])


def _read_index(path):
    weight_map = read_json(path).get("weight_map")
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
