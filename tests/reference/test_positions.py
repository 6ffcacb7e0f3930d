"""Position tables against their formulas, written out another way, and against transformers where that is installed."""

import math

import numpy as np
import pytest

from cygnet.architectures.spec import RopeScaling
from cygnet.errors import OptionError
from cygnet.reference import positions


@pytest.mark.parametrize("dim", [1, 2, 6, 7, 64])
def test_sinusoidal_layouts(dim):
    table = positions.sinusoidal_positions(9, dim)
    halves = positions.sinusoidal_positions(9, dim, "halves")
    sines = (dim + 1) // 2
    for p in range(9):
        for i in range(dim):
            angle = p / 10000 ** (2 * (i // 2) / dim)
            assert abs(table[p, i] - (math.cos if i % 2 else math.sin)(angle)) < 1e-6
            assert halves[p, i // 2 + (sines if i % 2 else 0)] == table[p, i]


def test_fairseq_layout_spaces_frequencies_to_the_end_and_clears_padding():
    table = positions.sinusoidal_positions(8, 10, "fairseq", padding_idx=1)
    assert (table[1] == 0).all()
    assert abs(table[7, 4] - math.sin(7 / 10000)) < 1e-7
    assert abs(table[7, 9] - math.cos(7 / 10000)) < 1e-7
    assert (positions.sinusoidal_positions(3, 5, "fairseq")[:, 4] == 0).all()


def test_unknown_layout_is_refused():
    with pytest.raises(OptionError, match="spiral"):
        positions.sinusoidal_positions(1, 2, "spiral")


def test_plain_frequencies():
    inverse, factor = positions.rope_frequencies(8, 100.0)
    assert np.allclose(inverse, [1, 100**-0.25, 0.1, 100**-0.75])
    assert factor == 1


def test_scalings_agree_with_plain_where_they_should():
    plain, _ = positions.rope_frequencies(16)
    assert np.allclose(positions.rope_frequencies(16, scaling=RopeScaling("linear", factor=4.0))[0] * 4, plain)
    dynamic = RopeScaling("dynamic", factor=2.0)
    assert np.array_equal(positions.rope_frequencies(16, scaling=dynamic, max_positions=64, sequence_length=64)[0], plain)
    assert positions.rope_frequencies(16, scaling=dynamic, max_positions=64, sequence_length=65)[0][-1] < plain[-1]
    unscaled = RopeScaling("yarn", factor=1.0, original_max_positions=64)
    inverse, factor = positions.rope_frequencies(16, scaling=unscaled, max_positions=64)
    assert np.allclose(inverse, plain) and factor == 1


def test_odd_and_unknown_requests_are_refused():
    with pytest.raises(OptionError, match="even"):
        positions.rope_frequencies(7)
    with pytest.raises(OptionError, match="fractal"):
        positions.rope_frequencies(8, scaling=RopeScaling("fractal"))
    with pytest.raises(OptionError, match="4 factors"):
        positions.rope_frequencies(8, scaling=RopeScaling("longrope", original_max_positions=8, short_factor=(1.0,)), max_positions=16)


def test_alibi_slopes():
    assert np.allclose(positions.alibi_slopes(8), [2.0**-i for i in range(1, 9)])
    assert np.allclose(positions.alibi_slopes(3), [2.0**-4, 2.0**-8, 2.0**-2])
    assert np.allclose(positions.alibi_slopes(2, max_bias=4), [2.0**-2, 2.0**-4])
    with pytest.raises(OptionError):
        positions.alibi_slopes(0)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("buckets, reach", [(32, 128), (8, 16), (64, 256), (24, 77)])
def test_t5_buckets_grow_from_zero_to_the_last(bidirectional, buckets, reach):
    back = positions.t5_buckets(-np.arange(3 * reach), bidirectional=bidirectional, num_buckets=buckets, max_distance=reach)
    one_side = buckets // 2 if bidirectional else buckets
    assert back[0] == 0 and back[-1] == one_side - 1
    assert (np.diff(back) >= 0).all()
    assert np.array_equal(back[: one_side // 2], np.arange(one_side // 2))
    ahead = positions.t5_buckets(np.arange(1, 10), bidirectional=bidirectional, num_buckets=buckets, max_distance=reach)
    assert np.array_equal(ahead, back[1:10] + one_side if bidirectional else np.zeros(9))


def test_deberta_buckets_are_odd_and_grow():
    relative = np.arange(-600, 601)
    bucket = positions.deberta_buckets(relative, 256, 512)
    assert np.array_equal(bucket, -bucket[::-1])
    assert (np.diff(bucket) >= 0).all()
    assert np.array_equal(bucket[np.abs(relative) <= 128], np.arange(-128, 129))
    assert bucket[600 + 511] == 255


@pytest.mark.parity
def test_buckets_equal_transformers():
    torch = pytest.importorskip("torch")
    deberta = pytest.importorskip("transformers.models.deberta_v2.modeling_deberta_v2")
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    relative = np.arange(-5000, 5001)
    for bidirectional in (True, False):
        for buckets, reach in ((32, 128), (8, 16), (32, 1000), (24, 77)):
            options = {"bidirectional": bidirectional, "num_buckets": buckets, "max_distance": reach}
            want = t5.T5Attention._relative_position_bucket(torch.from_numpy(relative), **options).numpy()
            assert np.array_equal(positions.t5_buckets(relative, **options), want)
    for size, reach in ((256, 512), (8, 48), (12, 100)):
        want = deberta.make_log_bucket_position(torch.from_numpy(relative), size, reach).numpy()
        assert np.array_equal(positions.deberta_buckets(relative, size, reach), want)
