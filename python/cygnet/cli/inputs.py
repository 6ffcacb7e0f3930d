"""Where a command's texts come from: arguments, a file, standard input; whole, by lines, or as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from cygnet.errors import FormatError, OptionError


def whole_texts(args) -> list[str]:
    """The texts given as arguments, else the whole of a file or of standard input as one text."""
    if args.texts and args.file:
        raise OptionError("texts and --file exclude each other: give one")
    if args.texts:
        return args.texts
    with _open(args.file) as file:
        return [_decode(file.read(), args.file).removesuffix("\n")]


def line_texts(args) -> Iterator[str]:
    """The texts given as arguments, else one text a line, read as they come."""
    if args.texts and args.file:
        raise OptionError("texts and --file exclude each other: give one")
    if args.texts:
        yield from args.texts
        return
    as_json = args.jsonl or (args.file or "").endswith((".jsonl", ".ndjson"))
    with _open(args.file) as file:
        for number, line in enumerate(file, 1):
            text = _decode(line, args.file).rstrip("\r\n")
            yield _from_json(text, args.field, number, args.file) if as_json else text


def _open(name: str | None):
    if name is None or name == "-":
        if name is None and sys.stdin.isatty():
            raise OptionError("no text given: give one as an argument, with --file, or on standard input")
        return open(sys.stdin.fileno(), "rb", closefd=False)
    return open(name, "rb")


def _decode(raw: bytes, name: str | None) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{name or 'standard input'} is not UTF-8 text: byte {error.start} is {raw[error.start]:#04x}") from None


def _from_json(line: str, field: str, number: int, name: str | None) -> str:
    where = f"{name or 'standard input'}, line {number}"
    try:
        value = json.loads(line)
    except ValueError as error:
        raise FormatError(f"{where}: no JSON: {error}") from None
    if isinstance(value, dict):
        if field not in value:
            raise FormatError(f"{where}: no field {field!r}; name it with --field")
        value = value[field]
    if not isinstance(value, str):
        raise FormatError(f"{where}: a text is wanted, not {value!r:.40}")
    return value
