"""Lexical shortlists of Marian's translators: the words that may occur in the translation of a source, read from a binary file beside the model.

The file: six u64 (magic number, checksum, number of frequent words, best words a source word, length of the table of offsets, number of entries), the
offsets (u64), the entries (u32): those of source word i are entries offsets[i] to offsets[i + 1] (https://github.com/marian-nmt/marian-dev).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cygnet.errors import FormatError
from cygnet.files import read_bytes

HEADER = struct.Struct("<6Q")
MAGIC = 0xF11A48D5013417F5


class Shortlist:
    """The words that a translation may use.

    Parameters
    ----------
    path : Path

    Raises
    ------
    FormatError
        If the file is damaged.
    """

    def __init__(self, path: Path):
        data = read_bytes(path)
        if len(data) < HEADER.size:
            raise FormatError(f"{path}: a shortlist of {len(data)} bytes; its header alone has {HEADER.size}")
        magic, _, self.frequent, _, words, count = HEADER.unpack_from(data)
        if magic != MAGIC or words < 1 or HEADER.size + 8 * words + 4 * count != len(data) or self.frequent > words:
            raise FormatError(f"{path}: not a shortlist: {words} offsets and {count} entries do not make {len(data)} bytes")
        self.offsets = np.frombuffer(data, "<u8", words, HEADER.size)
        self.entries = np.frombuffer(data, "<u4", count, HEADER.size + 8 * words)
        if (self.offsets[1:] < self.offsets[:-1]).any() or self.offsets[-1] > count or (count and self.entries.max() >= words):
            raise FormatError(f"{path}: a shortlist whose entries lie outside of its tables")

    def of(self, source_ids: Sequence[int]) -> list[int]:
        """Ascending ids: the frequent words, those of the source, and the likely translations of each."""
        found = [np.arange(self.frequent, dtype=np.int64)]
        for token in set(source_ids):
            found.append(np.array([token], np.int64))
            if token + 1 < len(self.offsets):
                found.append(self.entries[int(self.offsets[token]) : int(self.offsets[token + 1])].astype(np.int64))
        return np.unique(np.concatenate(found)).tolist()


def find_shortlist(folder: Path) -> Shortlist | None:
    """The shortlist in a model's folder, known by its magic number; None where there is none."""
    for path in sorted(folder.glob("*.bin")):
        if path.is_file() and read_bytes(path, size=8) == MAGIC.to_bytes(8, "little"):
            return Shortlist(path)
    return None
