"""The worked examples of a lecture on Transformers, with the values that the formulas give."""

import math

import numpy as np

from cygnet import functional as F


def test_two_token_attention():
    identity = np.eye(2, dtype=np.float32)
    value = np.array([[1, 1], [1, 0]], np.float32)
    near, far = math.exp(1 / math.sqrt(2)), 1.0
    weight = near / (near + far)
    assert round(weight, 2) == 0.67 and round(1 - weight, 2) == 0.33
    mixed = F.attention(identity[None, None], identity[None, None], value[None, None])[0, 0]
    np.testing.assert_allclose(mixed, [[1, weight], [1, 1 - weight]], atol=1e-6)


def test_sinusoidal_positions():
    table = F.sinusoidal_positions(3, 4)
    np.testing.assert_allclose(table[0], [0, 1, 0, 1], atol=1e-7)
    np.testing.assert_allclose(table[1, :2], [0.841471, 0.540302], atol=1e-6)
    np.testing.assert_allclose(table[2, :2], [math.sin(2), math.cos(2)], atol=1e-6)
    np.testing.assert_allclose(table[1, 2:], [math.sin(0.01), math.cos(0.01)], atol=1e-6)


def test_causal_mask_on_a_table_of_scores():
    scores = np.array([[1, 9, 9, 9], [2, 1, 9, 9], [1, 2, 3, 9], [0, 0, 0, 0]], np.float32)
    weights = F.softmax(scores, mask=np.tril(np.ones((4, 4), bool)))
    for row in range(4):
        allowed = np.exp(scores[row, : row + 1].astype(np.float64))
        np.testing.assert_allclose(weights[row, : row + 1], allowed / allowed.sum(), atol=1e-6)
        assert (weights[row, row + 1 :] == 0).all()


def test_layer_norm():
    normed = F.layer_norm(np.array([[1, 2, 3, 4]], np.float32), np.ones(4, np.float32), np.zeros(4, np.float32), eps=0)
    np.testing.assert_allclose(normed, np.array([[-3, -1, 1, 3]]) / math.sqrt(5), atol=1e-6)


def test_feed_forward():
    x, up, down = np.array([[1, -2]], np.float32), np.array([[1, 0], [0, 1], [1, 1]], np.float32), np.array([[1, 2, 3]], np.float32)
    np.testing.assert_allclose(F.feed_forward(x, up, down, activation="relu"), [[1]])
    np.testing.assert_allclose(F.feed_forward(x, up, down, activation="relu", up_bias=np.array([0, 3, 2], np.float32)), [[1 + 2 + 3]])
