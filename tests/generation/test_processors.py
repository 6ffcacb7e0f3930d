"""Processors against their formulas, at the edges of histories, in their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cygnet._core._processors import History, Processors, force, keep_only


def history(prompt, output=()):
    made = History(prompt)
    for token in output:
        made.append(token)
    return made


def apply(logits, made, **options):
    row = np.array(logits, np.float32)
    Processors(**options).apply(row, made)
    return row.tolist()


def test_penalties_count_the_right_tokens():
    # Prompt {0}, output {1, 1}: repetition looks at both, presence and frequency at the output alone.
    made = history([0], [1, 1])
    assert apply([2, -2, 1], made, repetition_penalty=2.0) == [1, -4, 1]
    assert apply([2, -2, 1], made, presence_penalty=0.5) == [2, -2.5, 1]
    assert apply([2, -2, 1], made, frequency_penalty=0.5) == [2, -3, 1]
    assert apply([2, -2, 1], made) == [2, -2, 1]
    assert not Processors().active and Processors(frequency_penalty=-1).active


def test_the_order_of_bias_and_penalties():
    made = history([0], [1])
    found = apply([1, 1, 1], made, bias=[((1,), 3.0)], repetition_penalty=2.0, presence_penalty=0.5)
    assert found == [0.5, (1 + 3) / 2 - 0.5, 1]


@pytest.mark.parametrize(("size", "barred"), [(1, {1, 2, 3}), (2, {2}), (3, {2}), (4, {2}), (6, set()), (9, set())])
def test_ngrams(size, barred):
    found = apply(np.zeros(5), history([1, 2, 3, 1, 2], [3, 1]), no_repeat_ngram_size=size)
    assert {i for i, x in enumerate(found) if x == -np.inf} == barred


def test_words_longer_than_the_history_and_at_its_ends():
    words = [(3,), (1, 2), (0, 1, 4), (9, 9, 9, 0)]
    assert apply(np.zeros(6), history([0, 1]), bad_words=words) == [0, 0, -np.inf, -np.inf, -np.inf, 0]
    assert apply(np.zeros(6), history([1]), bad_words=words) == [0, 0, -np.inf, -np.inf, 0, 0]
    assert apply(np.zeros(6), history([5]), bad_words=words) == [0, 0, 0, -np.inf, 0, 0]
    assert apply(np.zeros(3), history([1]), bias=[((1, 2), 1.5), ((2,), 1.0), ((0, 2), 9.0)]) == [0, 0, 2.5]


def test_end_ids_and_suppression_by_length():
    options = {"min_new_tokens": 2, "end_ids": (1, 2), "begin_suppress": (0,), "suppress": (3,)}
    for output, barred in (([], {0, 1, 2, 3}), ([4], {1, 2, 3}), ([4, 4], {3})):
        found = apply(np.zeros(5), history([4, 4, 4], output), **options)
        assert {i for i, x in enumerate(found) if x == -np.inf} == barred


def test_forcing():
    row = np.array([3, np.nan, -np.inf, 5], np.float32)
    keep_only(row, [0, 2, 0])
    assert row.tolist() == [3, -np.inf, -np.inf, -np.inf]
    force(row, (1, 2))
    assert row.tolist() == [-np.inf, 0, 0, -np.inf]


@given(st.lists(st.integers(0, 400), max_size=600), st.lists(st.integers(0, 400), max_size=600))
def test_histories_of_any_length_count_and_fork(prompt, output):
    made = history(prompt, output)
    assert made.ids() == prompt + output and made.generated == len(output)
    copy = made.fork()
    copy.append(400)
    assert made.ids() == prompt + output and copy.ids() == [*prompt, *output, 400]
    wanted = np.zeros(401, np.float32)
    for token in [*output, 400]:
        wanted[token] -= 1
    assert apply(np.zeros(401), copy, frequency_penalty=1.0) == wanted.tolist()
    seen = set(prompt) | set(output)
    assert apply(np.ones(401), made, repetition_penalty=2.0) == [0.5 if i in seen else 1 for i in range(401)]
