"""The small JSON files that lie beside a checkpoint's weights."""

from __future__ import annotations

import json
from pathlib import Path

from cygnet.errors import FormatError


def read_json(path: Path, default=None):
    """The content of a JSON file; `default` where there is no such file.

    Raises
    ------
    FormatError
        The file is there and is no JSON, or not of the same kind as the default.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} cannot be read as JSON: {error}") from error
    if default is not None and not isinstance(content, type(default)):
        raise FormatError(f"{path} holds a JSON {type(content).__name__} where a {type(default).__name__} is wanted")
    return content
