"""Filters and draws against their definitions, extreme values, and the random numbers against published ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cygnet._core._rows import gather_logprobs, log_softmax_row, top_logprobs
from cygnet._core._sampling import Sampler, philox_block, uniform

NEUTRAL = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0}


def sampler(**options):
    return Sampler(**{**NEUTRAL, **options})


def kept(logits, **options):
    """Indices that survive the filters."""
    return np.flatnonzero(np.isfinite(sampler(**options).filter(np.array(logits, np.float32)))).tolist()


def softmax(x):
    weights = np.exp(x - x.max())
    return weights / weights.sum()


def by_definition(logits, temperature, top_k, top_p, min_p):
    """The filters in their documented order, with full sorts."""
    x = logits.astype(np.float64) / temperature
    alive = np.isfinite(x)
    if 0 < top_k < len(x):
        alive &= x >= np.sort(x)[-top_k]
    p = softmax(np.where(alive, x, -np.inf))
    if top_p < 1:
        order = np.argsort(-p, kind="stable")
        before = np.cumsum(p[order]) - p[order]
        alive[order] &= (before < top_p) | (np.arange(len(x)) == 0)
        p = softmax(np.where(alive, x, -np.inf))
    return np.flatnonzero(alive & (p >= min_p * p.max())).tolist()


def test_philox_known_answers():
    # The test vectors published with Random123.
    assert philox_block(0, 0, 0) == (0xE169C58D6627E8D5, 0x9B00DBD8BC57AC4C)
    ones = 2**64 - 1
    assert philox_block(ones, ones, ones) == (0x41C83B0E408F276D, 0x6D5451FDA20BC7C6)
    digits = philox_block(0x299F31D0A4093822, 0x85A308D3243F6A88, 0x0370734413198A2E)
    assert digits == (0x94FDCCEBD16CFE09, 0x24126EA15001E420)


def test_random_numbers_are_uniform_and_distinct():
    numbers = np.array([uniform(seed, sample, position) for seed in (1, 2) for sample in range(10) for position in range(200)])
    assert len(set(numbers)) == len(numbers)
    assert 0 <= numbers.min() and numbers.max() < 1
    assert np.histogram(numbers, 10, (0, 1))[0] == pytest.approx(400, abs=80)


def test_temperature_comes_before_top_p():
    assert kept([3, 2, 1], top_p=0.8, temperature=0.5) == [0]
    assert kept([3, 2, 1], top_p=0.8) == [0, 1]


def test_min_p_is_a_share_of_the_largest_probability():
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    assert kept(logits, min_p=0.29) == [0, 1, 2]
    assert kept(logits, min_p=0.31) == [0, 1]
    assert kept([1, 2, 2], min_p=1.0) == [1, 2]


def test_top_k_comes_before_top_p():
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    assert kept(logits, top_p=0.55) == [0, 1]
    assert kept(logits, top_k=2, top_p=0.55) == [0]
    assert kept([1, 1, 1, 0], top_k=2) == [0, 1, 2]


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 7, 100, 1000]), st.sampled_from([0.3, 1.0, 2.0]),
    st.integers(0, 120), st.sampled_from([0.0, 1e-8, 0.1, 0.5, 0.9, 0.999, 1.0]), st.sampled_from([0.0, 0.05, 0.5]),
)  # fmt: skip
def test_filters_by_definition(seed, size, temperature, top_k, top_p, min_p):
    logits = np.random.default_rng(seed).standard_normal(size).astype(np.float32) * 3
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    assert kept(logits, **options) == by_definition(logits, **options)


def test_ties_and_flat_rows():
    assert kept(np.zeros(1000), top_p=0.25) == list(range(250))
    assert kept(np.zeros(7), top_p=0.0) == [0]
    assert kept(np.zeros(7), typical_p=0.5) == list(range(7))
    assert len(kept(np.sort(np.random.default_rng(0).standard_normal(5000))[::-1], top_p=0.9)) > 500


@pytest.mark.parametrize(
    "options",
    [
        {"top_p": 0.0}, {"top_p": 1e-8}, {"top_p": 1.0}, {"top_k": 0}, {"top_k": 1}, {"top_k": 51}, {"min_p": 1.0}, {"typical_p": 1.0},
        {"typical_p": 1e-9}, {"temperature": 1e-4}, {"temperature": 1e-45}, {"temperature": 1e9}, {"temperature": 1e300},
        {"epsilon_cutoff": 0.999}, {"eta_cutoff": 0.999},
    ],
)  # fmt: skip
def test_extreme_values_keep_a_token(options):
    rows = np.random.default_rng(1).standard_normal((20, 50)).astype(np.float32)
    rows[1] *= 1e30
    rows[2, 1:] = -np.inf
    rows[3] = 0
    rows[4, ::2] = np.nan
    for place, row in enumerate(rows):
        chooser = sampler(**options)
        token = chooser.choose(row, 3, 0, place)
        assert 0 <= token < 50 and np.isfinite(row[token])
        if options.get("temperature") == 1e-4 and place != 3:
            assert token == np.nanargmax(row)


def test_nothing_to_choose_from():
    for row in (np.full(5, -np.inf, np.float32), np.full(5, np.nan, np.float32)):
        assert sampler().choose(row, 0, 0, 0) == -1
        assert sampler(temperature=0.0).choose(row, 0, 0, 0) == -1


def test_greedy_ties_and_block_borders():
    for size in (1, 15, 16, 17, 33, 1001):
        row = np.zeros(size, np.float32)
        row[[size // 2, size - 1]] = 1
        assert sampler(temperature=0.0).choose(row, 0, 0, 0) == size // 2


def test_draws_follow_the_distribution():
    logits = np.array([2, 1, 0, -1, -np.inf], np.float32)
    chooser = sampler(temperature=0.8)
    counts = np.bincount([chooser.choose(logits, 5, 0, i) for i in range(20000)], minlength=5)
    assert counts / 20000 == pytest.approx(softmax(logits / 0.8), abs=0.015)
    assert counts[4] == 0


def test_log_probabilities():
    rows = np.random.default_rng(2).standard_normal((4, 300)).astype(np.float32) * 5
    expected = rows - np.log(np.exp(rows.astype(np.float64)).sum(-1, keepdims=True))
    out = np.empty(4)
    gather_logprobs(rows, np.array([0, 5, 299, 7]), out)
    assert out == pytest.approx(expected[[0, 1, 2, 3], [0, 5, 299, 7]], abs=1e-6)
    value, top = top_logprobs(rows[0], 5, 300)
    assert value == pytest.approx(expected[0, 5], abs=1e-6)
    assert [i for i, _ in top] == np.argsort(-expected[0], kind="stable").tolist()
    row = rows[1].copy()
    log_softmax_row(row)
    assert row == pytest.approx(expected[1], abs=1e-5)
    assert [i for i, _ in top_logprobs(np.zeros(6, np.float32), 3, 2)[1]] == [0, 1]
