"""The byte-level alphabet of GPT-2: each byte value has one printable character, so that a byte string is spelled as text.

Printable Latin-1 bytes spell themselves; the 68 others take the code points from 256 on, in order of their value.
"""

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [b for b in range(256) if b not in set(_PRINTABLE)]

BYTE_TO_CHAR: list[str] = [""] * 256
for _b in _PRINTABLE:
    BYTE_TO_CHAR[_b] = chr(_b)
for _n, _b in enumerate(_OTHERS):
    BYTE_TO_CHAR[_b] = chr(256 + _n)

CHAR_TO_BYTE: dict[str, int] = {c: b for b, c in enumerate(BYTE_TO_CHAR)}
SPACE_CHAR = BYTE_TO_CHAR[0x20]

# How vocabularies that fall back on bytes spell them.
BYTE_TOKENS: list[str] = [f"<0x{_b:02X}>" for _b in range(256)]


def to_bytes(token: str) -> bytes | None:
    """The bytes a byte-level token spells, or None where a character is outside the alphabet."""
    try:
        return bytes([CHAR_TO_BYTE[c] for c in token])
    except KeyError:
        return None


def to_chars(data: bytes) -> str:
    """The spelling of bytes in the byte-level alphabet."""
    return "".join([BYTE_TO_CHAR[b] for b in data])
