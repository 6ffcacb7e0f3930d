"""Cutting long texts: nothing is lost, nothing is too long, lines stay lines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cygnet.models.text_pieces import split_line, split_lines


def count(text):
    """A tokenizer of two characters a token, words apart."""
    return sum((len(word) + 1) // 2 for word in text.split())


def cut(text, limit):
    return 2 * limit


@pytest.mark.parametrize("text", ["", "a", "a\n", "\n\n", "a\r\nb\rc\n\nd", "é\u2028x"])
def test_lines_join_to_the_text(text):
    lines = split_lines(text)
    assert "".join(line + end for line, end in lines) == text
    assert all("\n" not in line and "\r" not in line for line, _ in lines)


def test_short_line_stays_whole():
    assert split_line("One. Two. Three.", 100, count, cut) == [("One. Two. Three.", "")]


def test_cut_between_sentences():
    assert [piece for piece, _ in split_line("One is here. Two is there! And three?  Four.", 9, count, cut)] == [
        "One is here.",
        "Two is there!",
        "And three?  Four.",
    ]


def test_sentences_without_spaces():
    assert [piece for piece, _ in split_line("今日は。明日も。", 2, count, cut)] == ["今日は。", "明日も。"]


def test_one_unbroken_run():
    pieces = split_line("x" * 5000, 100, count, cut)
    assert len(pieces) == 25 and "".join(p + s for p, s in pieces) == "x" * 5000


def test_a_cut_that_makes_no_progress_still_ends():
    assert "".join(p for p, _ in split_line("abcdef", 1, len, lambda text, limit: 0)) == "abcdef"


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab .!?,;。\"' \t", max_size=120), st.integers(1, 12))
def test_pieces_join_and_fit(line, limit):
    pieces = split_line(line, limit, count, cut)
    assert "".join(piece + space for piece, space in pieces) == line
    assert all(count(piece) <= limit for piece, _ in pieces)
    assert all(not space.strip() for _, space in pieces)
