"""Which decoders a table of ids can stand for: those that treat each token alone, but for the first one, byte runs and the ends of the text."""

from __future__ import annotations

from collections.abc import Callable

from cygnet._core._decode import DecodeTable
from cygnet.records import record
from cygnet.tokenizers import decoders
from cygnet.tokenizers.byte_alphabet import to_bytes
from cygnet.tokenizers.components import Decoder


@record
class TableForm:
    """A decoder in the form of a table.

    Attributes
    ----------
    text : callable, (index, token) -> bytes
        What a token adds to the text; only the indices 0 and 1 are asked for.
    reads_bytes : bool
        Tokens <0x..> are bytes.
    strip : (int, int, int)
        A byte, and how many of it go off the left and the right end of the text.
    """

    text: Callable[[int, str], bytes]
    reads_bytes: bool = False
    strip: tuple[int, int, int] = (0, 0, 0)


def table_form(decoder: Decoder | None) -> TableForm | None:
    """The table that gives the same text as the decoder, or None."""
    if decoder is None:
        return TableForm(lambda index, token: (" " + token if index else token).encode())
    if getattr(decoder, "context_free", False):
        return TableForm(lambda index, token: decoder.bytes_of(token))
    if isinstance(decoder, decoders.ByteLevel):
        return TableForm(lambda index, token: _bytes_or_text(token))
    if isinstance(decoder, decoders.Sequence):
        return _sequence_form(decoder.decoders)
    return _sequence_form([decoder])


def _bytes_or_text(token: str) -> bytes:
    spelled = to_bytes(token)
    return token.encode() if spelled is None else spelled


def _sequence_form(parts: list[Decoder]) -> TableForm | None:
    """Single-token decoders, then at most one that reads bytes, then fusing and stripping; what counts tokens must come before bytes are read."""
    functions: list[Callable[[int, str], str]] = []
    reads_bytes = fused = False
    strip = (0, 0, 0)
    for part in parts:
        if isinstance(part, decoders.Fuse):
            fused = True
        elif isinstance(part, decoders.Strip) and fused and part.content.isascii() and strip == (0, 0, 0):
            strip = (ord(part.content), part.start, part.stop)
        elif fused or reads_bytes:
            return None
        elif isinstance(part, decoders.ByteFallback):
            # Only the first token may still be spelled as a byte behind these.
            if any(isinstance(other, (decoders.WordPiece, decoders.Metaspace)) for other in parts[: len(functions)]):
                return None
            reads_bytes = True
        elif isinstance(part, (decoders.WordPiece, decoders.Metaspace, decoders.Replace, decoders.Strip)):
            functions.append(part.token)
        else:
            return None

    def text(index: int, token: str) -> bytes:
        for function in functions:
            token = function(index, token)
        return token.encode()

    return TableForm(text, reads_bytes, strip)


def decode_table(decoder: Decoder | None, spell: Callable[[int], str | None], special: set[str]) -> DecodeTable | None:
    """A table for ids as `spell` spells them, or None where the decoder has none."""
    form = table_form(decoder)
    if form is None:
        return None

    def look_up(token_id: int) -> tuple[bytes, bytes, int, bool] | None:
        token = spell(token_id)
        if token is None:
            return None
        rest = form.text(1, token)
        is_byte = form.reads_bytes and decoders.BYTE_TOKEN.fullmatch(rest.decode())
        return rest, form.text(0, token), int(rest[3:5], 16) if is_byte else -1, token in special

    return DecodeTable(look_up, form.strip)
