"""AlignedText: ranges of the original through every kind of change."""

import pytest

from cygnet.tokenizers.aligned import AlignedText


def test_of_stands_for_itself():
    text = AlignedText.of("abc", start=2)
    assert text.spans == [(2, 3), (3, 4), (4, 5)]
    assert text.start == 2 and AlignedText.of("").start == 0


def test_transform_replaces_inserts_and_drops():
    text = AlignedText.of("abcd").transform([("X", 0), ("Y", 1), ("Z", -1), ("W", 1)])
    assert text.text == "XYZW"
    assert text.spans == [(0, 1), (0, 1), (1, 2), (2, 3)]


def test_transform_drops_at_start():
    assert AlignedText.of("abc").transform([("b", 0), ("c", 0)], removed_at_start=1).spans == [(1, 2), (2, 3)]


def test_replace_stands_for_the_end_of_the_range():
    text = AlignedText.of("a  b").replace([(1, 3)], "__")
    assert text.text == "a__b"
    assert text.spans == [(0, 1), (2, 3), (2, 3), (3, 4)]


@pytest.mark.parametrize("text", ["", "x", "xy"])
def test_prepend_and_append(text):
    aligned = AlignedText.of(text).prepend("<").append(">")
    assert aligned.text == (f"<{text}>" if text else "")
    assert len(aligned.spans) == len(aligned.text)
    if text:
        assert aligned.spans[0] == (0, 1) and aligned.spans[-1] == (len(text) - 1, len(text))


def test_what_is_put_in_front_stands_where_the_stretch_began():
    text = AlignedText.of("  ab", start=3).stripped(2, 4).map(str.upper).filter(lambda c: c != "A")
    assert text.replace([(0, 0)], "<").spans == [(3, 3), (6, 7)]
    assert text.slice(0, 1).replace([(0, 0)], "<").spans == [(6, 6), (6, 7)]


def test_original_of_ranges():
    text = AlignedText.of("abcd").filter(lambda c: c != "b")
    assert text.original(0, 2) == (0, 3)
    assert text.original(1, 1) == (2, 2)
    assert text.original(3, 3) == (4, 4)
