"""Attention of every instruction set against float64 with all switches, and the claims that its bits and its memory obey."""

import itertools

import numpy as np
import pytest

from cygnet._core import _attention
from cygnet.errors import OptionError
from cygnet.reference import ops

BLOCK, CHUNK = _attention.KEY_BLOCK, _attention.KEY_CHUNK
HEAD_DIMS = (1, 2, 5, 8, 15, 16, 17, 33, 64, 80, 100, 128, 512)


class Case:
    """Random inputs of one call: query (T, H, D), key and value (K, D)."""

    def __init__(self, seed, tokens, heads, dim, keys, *, half=False, first=0, extras=(), **switches):
        self.rng = np.random.default_rng(seed)
        self.query, self.key, self.value = (self.normal(*shape) for shape in ((tokens, heads, dim), (keys, dim), (keys, dim)))
        self.keys, self.half, self.first = keys, half, first
        self.switches = {"scale": dim**-0.5, **switches}
        self.zero = first + tokens + keys
        self.relative = self.normal(heads, 2 * self.zero + 1) if "relative" in extras else None
        self.key_bias = self.normal(keys) if "key_bias" in extras else None
        self.bias = self.normal(heads, tokens, keys) if "bias" in extras else None

    def normal(self, *shape):
        return self.rng.standard_normal(shape, np.float32)

    def blocks(self, isa, guarded=lambda a: a):
        dim = self.query.shape[2]
        # Unused slots hold NaN of either type.
        blocks = guarded(np.full((-(-self.keys // BLOCK), 2 * BLOCK * dim * (2 if self.half else 4)), 0xFF, np.uint8))
        _attention.store_kv(guarded(self.key), guarded(self.value), blocks, isa)
        return blocks

    def run(self, isa, rows=slice(None), heads=slice(None), guarded=lambda a: a, split=False):
        def part(a, *index):
            return None if a is None else guarded(np.ascontiguousarray(a[index]))

        query = part(self.query, rows, heads)
        out = guarded(np.full(query.shape, np.nan, np.float32))
        _attention.attention(
            query,
            self.blocks(isa, guarded),
            self.keys,
            out,
            first_query=self.first + range(self.query.shape[0])[rows].start if self.query.shape[0] else 0,
            relative=part(self.relative, heads),
            relative_zero=self.zero,
            key_bias=part(self.key_bias),
            bias=part(self.bias, heads, rows),
            split=split,
            isa=isa,
            **self.switches,
        )
        return out

    def reference(self):
        key, value = (a.astype(np.float16 if self.half else np.float32).astype(np.float64) for a in (self.key, self.value))
        tokens, heads, _ = self.query.shape
        bias = np.zeros((heads, tokens, self.keys))
        if self.relative is not None:
            distance = np.arange(self.keys)[None] - (self.first + np.arange(tokens))[:, None]
            bias += self.relative[:, self.zero + distance]
        if self.key_bias is not None:
            bias += self.key_bias
        if self.bias is not None:
            bias += self.bias
        query = self.query.transpose(1, 0, 2).astype(np.float64)
        return ops.attention(query, key[None], value[None], first_query=self.first, bias=bias, **self.switches).transpose(1, 0, 2)


def close(got, want):
    """Weighted means of values of order one: errors stay near the float32 rounding of the scores."""
    return got.shape == want.shape and np.abs(got - want).max(initial=0) < 3e-6


def bits(x):
    return np.ascontiguousarray(x).view(np.uint32)


@pytest.mark.parametrize("half", [False, True])
def test_head_sizes(half, isa):
    for i, dim in enumerate(HEAD_DIMS):
        for tokens, heads, keys in ((1, 1, 1), (3, 2, 31), (1, 5, 70), (9, 1, 64)):
            case = Case(i, tokens, heads, dim, keys, half=half)
            assert close(case.run(isa), case.reference()), (dim, tokens, heads, keys)


def test_every_combination_of_switches(isa):
    extras = ("relative", "key_bias", "bias")
    chosen = [c for n in range(4) for c in itertools.combinations(extras, n)]
    for i, (extra, causal, window, softcap) in enumerate(itertools.product(chosen, (False, True), (0, 1, 7, 40), (0.0, 3.0))):
        tokens, heads, keys = (7, 2, 75) if i % 2 else (40, 1, 90)
        case = Case(i, tokens, heads, 24, keys, first=keys - tokens, extras=extra, half=i % 3 == 0, causal=causal, window=window, softcap=softcap)
        assert close(case.run(isa), case.reference()), (extra, causal, window, softcap)


def test_a_query_gives_the_same_bits_alone(isa):
    for i, (causal, window, half) in enumerate(itertools.product((True, False), (0, 5, 33), (False, True))):
        case = Case(i, 37, 3, 40, 101, first=64, extras=("relative", "bias"), causal=causal, window=window, half=half)
        together = case.run(isa)
        for token, head in ((0, 0), (1, 2), (17, 1), (36, 2)):
            alone = case.run(isa, slice(token, token + 1), slice(head, head + 1))
            assert np.array_equal(bits(alone[0, 0]), bits(together[token, head])), (causal, window, half, token, head)
        for cut in (1, 5, 20):
            parts = np.concatenate([case.run(isa, slice(0, cut)), case.run(isa, slice(cut, None))])
            assert np.array_equal(bits(parts), bits(together)), (causal, window, half, cut)


@pytest.mark.parametrize("half", [False, True])
def test_chunks_that_are_joined_give_the_same_bits(half, isa):
    """Around the ends of chunks; windows that leave whole chunks out of sight; rows that see none."""
    for i, (tokens, heads, keys) in enumerate(
        ((1, 3, 1), (1, 3, CHUNK), (1, 1, CHUNK + 1), (3, 2, 3 * CHUNK - 1), (16, 5, 2 * CHUNK + 40), (1, 1, 0))
    ):
        for causal, window in ((True, 0), (True, 30), (True, CHUNK), (False, 0), (False, 20)):
            case = Case(
                i, tokens, heads, 24, keys, half=half, first=max(keys - tokens, 0), extras=("relative", "key_bias"), causal=causal, window=window
            )
            whole = case.run(isa)
            assert close(whole, case.reference()), (tokens, heads, keys, causal, window)
            assert np.array_equal(bits(case.run(isa, split=True)), bits(whole)), (tokens, heads, keys, causal, window)
            for token in {0, tokens - 1}:
                assert np.array_equal(bits(case.run(isa, slice(token, token + 1))[0]), bits(whole[token]))


def test_a_chunk_of_minus_infinities_between_others(isa):
    case = Case(13, 2, 2, 12, 3 * CHUNK, extras=("key_bias",))
    case.key_bias[CHUNK : 2 * CHUNK] = -np.inf
    assert close(case.run(isa), case.reference())
    case.key_bias[:CHUNK] = -np.inf
    assert close(case.run(isa), case.reference())
    assert np.array_equal(bits(case.run(isa, split=True)), bits(case.run(isa)))
    case.value[2 * CHUNK + 5] = np.nan
    assert np.isnan(case.run(isa)).all()


def test_storing_tells_what_float16_cannot_hold(isa):
    for dim in (1, 5, 16, 70):
        for place in (0, dim - 1):
            for value, beyond in ((65504.0, False), (65519.0, False), (65520.0, True), (-1e30, True), (np.inf, False), (np.nan, False)):
                for which in (0, 1):
                    pair = np.zeros((2, 1, dim), np.float32)
                    pair[which, 0, place] = value
                    half, single = (np.zeros((1, 2 * BLOCK * dim * size), np.uint8) for size in (2, 4))
                    assert _attention.store_kv(*pair, half, isa) is beyond, (dim, place, value, which)
                    assert _attention.store_kv(*pair, single, isa) is False


def test_keys_that_come_later_change_no_bit(isa):
    """Cached decoding equals recomputation: later keys, whole blocks of them too, do not touch an earlier causal query."""
    case = Case(1, 50, 2, 16, 50, causal=True)
    whole = case.run(isa)
    for length in (1, 31, 32, 33, 49):
        prefix = Case(1, 50, 2, 16, 50, causal=True)
        prefix.query, prefix.key, prefix.value, prefix.keys = prefix.query[:length], prefix.key[:length], prefix.value[:length], length
        assert np.array_equal(bits(prefix.run(isa)), bits(whole[:length]))


def test_keys_out_of_sight_may_hold_anything(isa):
    for bad in (np.nan, np.inf, -np.inf):
        for half in (False, True):
            case = Case(2, 20, 2, 20, 90, first=45, causal=True, window=30, half=half)
            want = case.run(isa)
            case.key[:16] = case.value[:16] = bad
            case.key[65:] = case.value[65:] = bad
            assert np.array_equal(bits(case.run(isa)), bits(want))
            # A future key within the block and tile of the queries: those before it must not notice.
            case.key[60] = case.value[60] = bad
            got = case.run(isa)
            assert np.array_equal(bits(got[:15]), bits(want[:15]))
            assert np.isnan(got[15:]).any()


def test_queries_without_a_key_give_zeros(isa):
    case = Case(3, 4, 2, 12, 40, first=100, window=5)
    assert (case.run(isa) == 0).all()
    hidden = Case(4, 4, 2, 12, 40, extras=("bias",))
    hidden.bias[:, 1] = -np.inf
    got = hidden.run(isa)
    assert (got[1] == 0).all()
    assert close(got, hidden.reference())
    assert Case(5, 0, 2, 8, 40).run(isa).shape == (0, 2, 8)
    assert (Case(6, 2, 2, 8, 0).run(isa) == 0).all()


def test_hidden_keys_of_minus_infinity_bias(isa):
    case = Case(7, 6, 2, 12, 100, extras=("key_bias",))
    case.key_bias[:40] = case.key_bias[90:] = -np.inf
    assert close(case.run(isa), case.reference())


def test_nan_in_a_query_shows_in_its_row_only(isa):
    case = Case(8, 5, 2, 12, 70, causal=True, first=65)
    want = case.run(isa)
    case.query[2, 1, 3] = np.nan
    got = case.run(isa)
    assert np.isnan(got[2, 1]).all()
    got[2, 1] = want[2, 1]
    assert np.array_equal(bits(got), bits(want))


def test_scores_in_the_thousands(isa):
    case = Case(9, 6, 2, 64, 100, scale=40.0)
    assert np.abs(case.run(isa) - case.reference()).max() < 1e-3


def test_long_range(isa):
    case = Case(10, 2, 3, 64, 5000, first=4998, causal=True)
    assert close(case.run(isa), case.reference())


@pytest.mark.parametrize("half", [False, True])
def test_no_access_outside_the_arrays(half, isa, guarded):
    for i, (tokens, heads, dim, keys) in enumerate(((1, 1, 1, 1), (3, 3, 7, 33), (9, 1, 17, 64), (2, 2, 100, 50))):
        case = Case(i, tokens, heads, dim, keys, half=half, first=max(keys - tokens, 0), extras=("key_bias", "bias"), causal=True, window=20)
        assert np.array_equal(bits(case.run(isa, guarded=guarded)), bits(case.run(isa)))


def test_relative_bias_is_read_between_its_ends_only(isa, guarded):
    case = Case(11, 5, 2, 8, 45, first=40, extras=("relative",), causal=True)
    want = case.run(isa)
    case.relative, case.zero = case.relative[:, case.zero - 44 : case.zero + 1], 44
    assert np.array_equal(bits(case.run(isa, guarded=guarded)), bits(want))


def test_calls_that_do_not_fit_are_refused():
    case = Case(12, 2, 2, 8, 10)
    blocks = case.blocks(None)
    out = np.empty_like(case.query)

    def call(query=case.query, blocks=blocks, keys=10, out=out, **options):
        _attention.attention(query, blocks, keys, out, scale=1.0, **options)

    for wrong, message in (
        ({"keys": 33}, "hold fewer"),
        ({"keys": -1}, "negative"),
        ({"out": np.empty((2, 2, 9), np.float32)}, "differ in shape"),
        ({"blocks": np.zeros((1, 100), np.uint8)}, "fits neither"),
        ({"key_bias": np.zeros(9, np.float32)}, "key_bias"),
        ({"bias": np.zeros((2, 2, 9), np.float32)}, "bias"),
        ({"relative": np.zeros((2, 5), np.float32), "relative_zero": 2}, "distances"),
        ({"query": np.zeros((2, 2, 513), np.float32), "out": np.zeros((2, 2, 513), np.float32)}, "head size"),
    ):
        with pytest.raises(OptionError, match=message):
            call(**wrong)
