"""Stop strings: the text let through never depends on how it is cut into pieces."""

from hypothesis import given
from hypothesis import strategies as st

from cygnet.generation.stopping import StopMatcher, TextTracker


def let_through(pieces, stops):
    """Text of a matcher fed piece by piece until it finds a stop or the pieces end, and what it found."""
    matcher, text = StopMatcher(stops), ""
    for piece in pieces:
        text += matcher.push(piece)
        if matcher.found:
            return text, matcher.found
    return text + matcher.flush(), matcher.found


def earliest(text, stops):
    """By definition: the text before the first place where any stop starts, and whether there is one."""
    places = [text.find(stop) for stop in stops if stop in text]
    return (text[: min(places)], True) if places else (text, False)


stops = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3)


@given(st.lists(st.text("abc", max_size=5), max_size=12), stops)
def test_any_cutting_gives_the_text_before_the_earliest_stop(pieces, stops):
    text, found = let_through(pieces, stops)
    # The pieces after the one that decides are never read; what is let through is the same as for the whole text.
    assert (text, found is not None) == earliest("".join(pieces), stops)


@given(st.text("abc", max_size=30), stops)
def test_nothing_is_let_through_that_a_later_piece_takes_back(text, stops):
    matcher, shown = StopMatcher(stops), ""
    for at, letter in enumerate(text):
        shown += matcher.push(letter)
        assert not any(stop in shown for stop in stops)
        if matcher.found:
            break
        for stop in stops:
            # Were the stop string completed now, it would still be cut off whole.
            for size in range(1, len(stop)):
                if text[: at + 1].endswith(stop[:size]):
                    assert len(shown) <= at + 1 - size


def test_the_longest_of_stops_that_start_together_is_named():
    assert let_through(["x\n\nHuman:"], ["\n\n", "\n\nHuman:"]) == ("x", "\n\nHuman:")


def test_an_undecided_earlier_stop_is_waited_for():
    assert let_through(["abc", "d"], ["c", "bcd"]) == ("a", "bcd")
    assert let_through(["abc", "x"], ["c", "bcd"]) == ("ab", "c")
    assert let_through(["abc"], ["c", "bcd"]) == ("ab", "c")


class Held:
    """A decoder that gives everything at the end."""

    def __init__(self):
        self.ids = []

    def push(self, token_id):
        self.ids.append(token_id)
        return ""

    def flush(self):
        return "".join(map(chr, self.ids))


def test_text_that_the_decoder_held_back_is_searched_too():
    tracker = TextTracker(Held(), ["b"])
    assert [tracker.push(ord(letter)) for letter in "abc"] == ["", "", ""]
    assert tracker.finish() == "a"
    assert tracker.found == "b" and tracker.text == "a"


def test_without_a_decoder_there_is_no_text():
    tracker = TextTracker(None, ["b"])
    assert (tracker.prefix([1]), tracker.push(2), tracker.finish(), tracker.text) == ("", "", "", "")
