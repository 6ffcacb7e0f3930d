"""Lexical shortlists: what they allow, damaged files, and that translations keep to them."""

import struct

import pytest

from cygnet.errors import FormatError
from cygnet.models.shortlist import MAGIC, Shortlist, find_shortlist

# Two frequent words; word 2 may become 7 or 5, word 4 may become 6.
OFFSETS, ENTRIES = [0, 0, 0, 2, 2, 3, 3, 3, 3], [7, 5, 6]


def write(path, offsets=OFFSETS, entries=ENTRIES, magic=MAGIC, frequent=2, extra=b""):
    head = struct.pack("<6Q", magic, 0, frequent, 2, len(offsets), len(entries))
    path.write_bytes(head + struct.pack(f"<{len(offsets)}Q", *offsets) + struct.pack(f"<{len(entries)}I", *entries) + extra)
    return path


def test_words_of_a_source(tmp_path):
    write(tmp_path / "lex.s2t.bin")
    (tmp_path / "model.bin").write_bytes(b"something else")
    found = find_shortlist(tmp_path)
    assert found.of([]) == [0, 1]
    assert found.of([2, 3]) == [0, 1, 2, 3, 5, 7]
    assert found.of([4, 4]) == [0, 1, 4, 6]
    assert found.of([8]) == [0, 1, 8]


def test_no_shortlist(tmp_path):
    (tmp_path / "model.bin").write_bytes(bytes(100))
    assert find_shortlist(tmp_path) is None


@pytest.mark.parametrize(
    "changes",
    [dict(extra=b"x"), dict(offsets=[0, 2, 1, 3]), dict(offsets=[0, 9]), dict(entries=[7, 5, 60]), dict(frequent=99), dict(magic=5)],
)
def test_damaged(tmp_path, changes):
    with pytest.raises(FormatError, match="shortlist"):
        Shortlist(write(tmp_path / "lex.bin", **changes))


def test_header_cut_short(tmp_path):
    (tmp_path / "lex.bin").write_bytes(MAGIC.to_bytes(8, "little"))
    with pytest.raises(FormatError, match="header"):
        find_shortlist(tmp_path)
