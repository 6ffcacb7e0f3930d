"""The double-array trie against a dict."""

import random

import pytest

from cygnet._core._trie import Trie


@pytest.mark.parametrize("alphabet", [b"ab", b"\x00\x01\xff", bytes(range(256))])
@pytest.mark.parametrize("count", [0, 1, 2, 50, 3000])
def test_finds_what_a_dict_finds(alphabet, count):
    draw = random.Random(count)
    keys = {bytes(draw.choices(alphabet, k=draw.randrange(8))): i for i in range(count)}
    trie = Trie(keys.keys(), keys.values())
    probes = [bytes(draw.choices(alphabet, k=draw.randrange(9))) for _ in range(500)]
    for probe in [*keys, *probes]:
        assert trie.find(probe) == keys.get(probe)
        assert trie.prefixes(probe) == [(n, keys[probe[:n]]) for n in range(len(probe) + 1) if probe[:n] in keys]


def test_of_equal_keys_the_largest_value_counts():
    assert Trie(["a", b"a", "a"], [1, 3, 2]).find(b"a") == 3


def test_long_chains_take_memory_in_proportion():
    trie = Trie(["x" * 100_000, "y" * 100_000], [0, 1])
    assert trie.find(b"x" * 100_000) == 0
    assert trie.size < 400_000
