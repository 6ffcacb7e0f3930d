"""SentencePiece models written by hand."""

import struct

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE, WORD, CHAR = range(1, 5)
BYTES = [(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]
MARKS = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number, value):
    if isinstance(value, (bytes, str)):
        data = value.encode() if isinstance(value, str) else value
        return varint(number << 3 | 2) + varint(len(data)) + data
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(int(value))


def model(pieces, kind=UNIGRAM, byte_fallback=False, suffix=False, dummy=True, squeeze=True, escape=True, unk_surface=None):
    """Bytes of a ModelProto."""
    rows = b"".join(field(1, field(1, text) + field(2, score) + field(3, type_)) for text, score, type_ in pieces)
    trainer = field(3, kind) + field(24, suffix) + field(35, byte_fallback) + (field(44, unk_surface) if unk_surface is not None else b"")
    normalizer = field(3, dummy) + field(4, squeeze) + field(5, escape)
    return rows + field(2, trainer) + field(3, normalizer)


LETTERS = [*MARKS, ("▁", -2.0, NORMAL), ("a", -1.0, NORMAL), ("b", -1.5, NORMAL), ("ab", -1.2, NORMAL), ("▁ab", -1.1, NORMAL)]
