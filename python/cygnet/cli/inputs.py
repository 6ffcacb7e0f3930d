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
        text = _decode(file.read(), args.file).removesuffix("\n")
    if not text:
        raise OptionError(f"{'standard input' if args.file in (None, '-') else args.file} is empty: give a text")
    return [text]


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


def line_pairs(args) -> list[tuple[str, str]]:
    """The texts of `line_texts` as pairs: two texts a line with a tab between; of JSON lines, arrays of two texts.

    Raises
    ------
    FormatError
        A line holds no two texts.
    """
    as_json = args.jsonl or (args.file or "").endswith((".jsonl", ".ndjson"))
    if args.texts or not as_json:
        return [_pair(text.split("\t"), number) for number, text in enumerate(line_texts(args), 1)]
    with _open(args.file) as file:
        return [_pair(_json_value(_decode(line, args.file), number, args.file), number) for number, line in enumerate(file, 1)]


def read_whole(name: str) -> str:
    """The text of a file that an option names."""
    with _open(name) as file:
        return _decode(file.read(), name)


def read_schema(given: str):
    """A JSON schema: the text itself where it is JSON, else the content of the file of that name."""
    text = given if given.strip() == "true" or given.lstrip().startswith("{") else read_whole(given)
    return _json_value(text, 1, "the JSON schema")


def _pair(texts, number: int) -> tuple[str, str]:
    if not isinstance(texts, list) or len(texts) != 2 or not all(isinstance(text, str) for text in texts):
        raise FormatError(f"line {number}: two texts with a tab between are wanted (as JSON: an array of two texts), not {texts!r:.60}")
    return texts[0], texts[1]


def _open(name: str | None):
    if name is None or name == "-":
        if sys.stdin is None:
            raise OptionError("standard input is closed: give a text as an argument or with --file")
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
    value = _json_value(line, number, name)
    if isinstance(value, dict):
        if field not in value:
            raise FormatError(f"{where}: no field {field!r}; name it with --field")
        value = value[field]
    if not isinstance(value, str):
        raise FormatError(f"{where}: a text is wanted, not {value!r:.40}")
    return value


def _json_value(line: str, number: int, name: str | None):
    try:
        return json.loads(line)
    except ValueError as error:
        raise FormatError(f"{name or 'standard input'}, line {number}: no JSON: {error}") from None
