"""Pooling modes against their formulas, ragged edges, normalising."""

import numpy as np
import pytest

from cygnet.errors import UnsupportedModel
from cygnet.models import pooling

ROWS = np.array([[1, -2], [3, 4], [5, 0]], np.float32)
EXPECTED = {
    "cls": [1, -2],
    "max": [5, 4],
    "mean": [3, 2 / 3],
    "mean_sqrt_len": [9 / np.sqrt(3), 2 / np.sqrt(3)],
    "weightedmean": [(1 + 6 + 15) / 6, (-2 + 8 + 0) / 6],
    "lasttoken": [5, 0],
}


@pytest.mark.parametrize("mode", pooling.MODES)
def test_formula(mode):
    vectors = pooling.pool(ROWS, [0, 3], [mode])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [EXPECTED[mode]], rtol=1e-6)


def test_every_sequence_by_itself():
    hidden = np.random.default_rng(0).standard_normal((12, 5)).astype(np.float32)
    offsets = [0, 1, 5, 12]
    together = pooling.pool(hidden, offsets, list(pooling.MODES))
    for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:], strict=True)):
        np.testing.assert_array_equal(together[i], pooling.pool(hidden[a:b], [0, b - a], list(pooling.MODES))[0])


def test_modes_are_joined_in_a_fixed_order():
    joined = pooling.pool(ROWS, [0, 3], pooling.check_modes(["mean", "cls"], "x"))
    np.testing.assert_allclose(joined, [EXPECTED["cls"] + EXPECTED["mean"]], rtol=1e-6)


def test_rows_left_out():
    np.testing.assert_allclose(pooling.pool(ROWS, [0, 3], ["mean"], skip=[1]), [[4, 2]])


def test_sequence_without_rows_is_zero():
    np.testing.assert_array_equal(pooling.pool(ROWS[:1], [0, 0, 1], ["mean"]), [[0, 0], [1, -2]])


def test_normalize():
    out = pooling.normalize(np.array([[3, 4], [0, 0]], np.float32))
    np.testing.assert_allclose(out, [[0.6, 0.8], [0, 0]], rtol=1e-6)
    assert out.dtype == np.float32


@pytest.mark.parametrize("modes", [["median"], []])
def test_unknown_modes(modes):
    with pytest.raises(UnsupportedModel, match="folder/config.json: pooling"):
        pooling.check_modes(modes, "folder/config.json")
