"""Files on their way in and out: what the system refuses becomes a CygnetError, and only regular files are read.

A pipe or a device that stands where a model's file is expected would make a load wait for ever, or read for ever.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from cygnet.errors import CygnetError, FormatError, ModelNotFound, WriteError

REQUIRED: Any = object()


def open_regular(path: str | Path, error: type[CygnetError] = FormatError) -> BinaryIO:
    """A regular file, opened to read its bytes.

    Parameters
    ----------
    path : str or Path
    error : type
        What is raised where the file cannot be read.

    Raises
    ------
    FileNotFoundError
        No file of that name: callers know whether they can do without.
    """
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            raise error(f"{path} cannot be read: it is {'a folder' if stat.S_ISDIR(mode) else 'no regular file'}")
        return open(path, "rb")
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as problem:
        raise problem if isinstance(problem, CygnetError) else _unreadable(path, problem, error) from None


def read_bytes(path: str | Path, error: type[CygnetError] = FormatError, size: int = -1) -> bytes:
    """The content of a regular file, or its first `size` bytes; raises as `open_regular` does."""
    with open_regular(path, error) as file:
        try:
            return file.read(size)
        except OSError as problem:
            raise _unreadable(path, problem, error) from None


def read_text(path: str | Path, error: type[CygnetError] = FormatError) -> str:
    """The content of a regular UTF-8 file with every line break as \\n; raises as `open_regular` does."""
    try:
        return read_bytes(path, error).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as problem:
        raise error(f"{path} is not valid UTF-8: {problem}") from None


def read_json(path: str | Path, default: Any = REQUIRED, error: type[CygnetError] = FormatError) -> Any:
    """The content of a JSON file.

    Parameters
    ----------
    path : str or Path
    default : object, optional
        What stands for a file that does not exist. The content must be of its kind; an object is wanted for None and where there is no default.
    error : type
        What is raised where the file cannot be read or holds something else.

    Raises
    ------
    ModelNotFound
        There is no such file and no default.
    """
    try:
        content = json.loads(read_bytes(path, error))
    except FileNotFoundError:
        if default is REQUIRED:
            raise ModelNotFound(f"{path}: no such file; a model folder needs it beside its weights") from None
        return default
    except (ValueError, RecursionError) as problem:
        raise problem if isinstance(problem, CygnetError) else error(f"{path} is not valid JSON: {problem}") from None
    wanted = type(default) if isinstance(default, list) else dict
    if not isinstance(content, wanted):
        raise error(f"{path} holds a JSON {type(content).__name__}: {'an array' if wanted is list else 'an object'} is wanted")
    return content


@contextmanager
def written(path: str | Path) -> Iterator[None]:
    """Turns what the system refuses while `path` is written into a WriteError that names it."""
    try:
        yield
    except OSError as problem:
        raise problem if isinstance(problem, CygnetError) else WriteError(f"{path} cannot be written: {problem.strerror or problem}") from problem


@contextmanager
def replaced(path: str | Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` at the end of the block; where the block fails, an old file stays as it was.

    Raises
    ------
    WriteError
        The file cannot be written.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    with written(path):
        try:
            with open(temporary, "xb") as file:
                yield file
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def _unreadable(path: str | Path, problem: Exception, error: type[CygnetError]) -> CygnetError:
    return error(f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}")
