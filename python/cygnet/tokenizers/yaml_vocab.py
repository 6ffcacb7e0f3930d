"""The .yml vocabularies of Marian: a line `token: id` for each token, of YAML only what Marian and the makers of its models write.

A token stands in double quotes with YAML's escapes, in single quotes with '' for ', or plain. All else (nesting, anchors, tags, comments, tokens over
several lines) is refused, since a guess would move ids. JSON, which is YAML too, is read as such.
"""

from __future__ import annotations

import re
from pathlib import Path

from cygnet.errors import TokenizerError
from cygnet.files import read_text
from cygnet.tokenizers.json_fields import read_vocab

LINE = re.compile(
    r"""(?: "(?P<double>(?:[^"\\]|\\.)*)" | '(?P<single>(?:[^']|'')*)' | (?P<plain>[^"'\ \t].*?) ) [ ]* : [ ]+ (?P<id>[0-9]{1,10}) [ ]*""", re.VERBOSE
)
# How a token may not begin without quotes, and what ends it early.
NOT_PLAIN = re.compile(r"[,\[\]{}#&*!|>%@`]|[-?:](?:[ \t]|$)|.*(?::[ \t]|[ \t]#)")
ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
NAMED = dict(zip('0abtnvfre "/\\N_LP', '\0\a\b\t\n\v\f\r\x1b "/\\\x85\xa0\u2028\u2029', strict=True))


def read_yaml_vocab(path: Path) -> dict[str, int]:
    """Tokens to ids; of a token that is there twice the first line counts, as in Marian.

    Raises
    ------
    TokenizerError
        Where a line is none of a vocabulary, or two tokens have one id.
    """
    text = read_text(path, TokenizerError).removeprefix("\ufeff")  # the mark of UTF-8 that some editors put in front
    if text.lstrip().startswith("{"):
        return read_vocab(text.encode(), str(path))
    vocab: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not (line == "---" and not vocab):
            token, token_id = read_line(line, f"{path}, line {number}")
            vocab.setdefault(token, token_id)
    return read_vocab(vocab, str(path))


def read_line(line: str, where: str) -> tuple[str, int]:
    found = LINE.fullmatch(line)
    if found is None or NOT_PLAIN.match(found["plain"] or "."):
        raise TokenizerError(f"{where} is no token and its id as Marian writes them: {line[:60]!r}")
    if found["double"] is not None:
        token = ESCAPE.sub(lambda escape: unescaped(escape, where), found["double"])
    elif found["single"] is not None:
        token = found["single"].replace("''", "'")
    else:
        token = found["plain"]
    return token, int(found["id"])


def unescaped(escape: re.Match[str], where: str) -> str:
    """The character that an escape of a double-quoted token stands for."""
    digits = escape[1] or escape[2] or escape[3]
    code = int(digits, 16) if digits else ord(NAMED.get(escape[4], "\ud800"))
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise TokenizerError(f"{where}: {escape[0]} is no escape of YAML, or of no character")
    return chr(code)
