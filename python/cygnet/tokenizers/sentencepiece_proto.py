"""The ModelProto of a SentencePiece model file (sentencepiece_model.proto), as far as encoding and decoding need it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from cygnet._core._protobuf import fields, read_pieces
from cygnet.errors import TokenizerError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE, WORD, CHAR = range(1, 5)

# Field number -> (name, kind, default).
TRAINER = {
    3: ("model_type", int, UNIGRAM),
    24: ("treat_whitespace_as_suffix", bool, False),
    35: ("byte_fallback", bool, False),
    44: ("unk_surface", str, " \u2047 "),
}
NORMALIZER = {
    2: ("precompiled_charsmap", bytes, b""),
    3: ("add_dummy_prefix", bool, True),
    4: ("remove_extra_whitespaces", bool, True),
    5: ("escape_whitespaces", bool, True),
}


@dataclass
class ModelProto:
    """Pieces by id, and the settings of trainer, normalizer and denormalizer (None where the file has none)."""

    pieces: list[str]
    scores: list[float]
    types: bytes
    trainer: dict[str, Any]
    normalizer: dict[str, Any]
    denormalizer: dict[str, Any] | None

    def of_type(self, *types: int) -> list[int]:
        """Ids of the pieces of these types."""
        wanted = np.zeros(BYTE + 1, bool)
        wanted[list(types)] = True
        return np.flatnonzero(wanted[np.frombuffer(self.types, np.uint8)]).tolist()


def read_model_proto(data: bytes, where: str) -> ModelProto:
    """A ModelProto from its bytes.

    Raises
    ------
    TokenizerError
        Where the bytes are damaged; names the field.
    """
    pieces, scores, types, others = read_pieces(data) or read_carefully(data, where)
    if not pieces:
        raise TokenizerError(f"{where} holds no pieces")
    specs: dict[int, dict[str, Any]] = {}
    for number, value in others:
        if number in (2, 3, 5):
            table, name = {2: (TRAINER, "trainer_spec"), 3: (NORMALIZER, "normalizer_spec"), 5: (NORMALIZER, "denormalizer_spec")}[number]
            specs[number] = read_spec(value, table, f"{where}: {name}")
    trainer = specs.get(2) or read_spec(b"", TRAINER, where)
    return ModelProto(pieces, scores, types, trainer, specs.get(3) or read_spec(b"", NORMALIZER, where), specs.get(5))


def read_carefully(data: bytes, where: str) -> tuple[list[str], list[float], bytes, list[tuple[int, Any]]]:
    """What read_pieces gives, field by field, so that an error can name the one at fault."""
    found = fields(data, where)
    rows: list[tuple[str, float, int]] = []
    for number, value in found:
        if number == 1:
            rows.append(read_piece(value, f"{where}: pieces[{len(rows)}]"))
    pieces, scores, types = zip(*rows, strict=True) if rows else ((), (), ())
    return list(pieces), list(scores), bytes(types), [field for field in found if field[0] != 1]


def read_piece(data: Any, where: str) -> tuple[str, float, int]:
    """Text, score and type of one piece."""
    text, score, kind = b"", 0.0, NORMAL
    for number, value in fields(message(data, where), where):
        if number == 1:
            text = message(value, f"{where}.piece")
        elif number == 2:
            score = read_float(value, f"{where}.score")
        elif number == 3:
            kind = value
    if not isinstance(kind, int) or not NORMAL <= kind <= BYTE:
        raise TokenizerError(f"{where}.type is {kind!r}; known are 1 to 6")
    if not text:
        raise TokenizerError(f"{where} is empty")
    return decode(text, f"{where}.piece"), score, kind


def read_spec(data: Any, table: dict[int, tuple[str, type, Any]], where: str) -> dict[str, Any]:
    """Settings by name, defaults filled in."""
    out = {name: default for name, _, default in table.values()}
    for number, value in fields(message(data, where), where):
        if number not in table:
            continue
        name, kind, _ = table[number]
        if kind in (bool, int):
            if not isinstance(value, int):
                raise TokenizerError(f"{where}.{name} must be a number")
            out[name] = kind(value)
        else:
            raw = message(value, f"{where}.{name}")
            out[name] = decode(raw, f"{where}.{name}") if kind is str else raw
    return out


def message(value: Any, where: str) -> bytes:
    if not isinstance(value, bytes):
        raise TokenizerError(f"{where} must be a string of bytes")
    return value


def decode(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{where} is not valid UTF-8: {error}") from None


def read_float(value: Any, where: str) -> float:
    if not isinstance(value, bytes) or len(value) != 4:
        raise TokenizerError(f"{where} must be a 32-bit float")
    (number,) = struct.unpack("<f", value)
    if number - number != 0:
        raise TokenizerError(f"{where} is {number}")
    return number
