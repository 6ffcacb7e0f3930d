"""cygnet.functional against the NumPy reference: shapes, broadcasting, errors, its own examples and the conformance set."""

import doctest
import json

import numpy as np
import pytest

from cygnet import functional
from cygnet.architectures.spec import RopeScaling
from cygnet.errors import OptionError
from cygnet.reference import ops, positions

from .conformance_blocks import BLOCKS, block


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def close(got, want, tolerance=2e-6):
    assert got.dtype == np.float32
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0) < tolerance


def test_examples():
    assert doctest.testmod(functional).failed == 0


def test_everything_listed_is_there():
    assert all(callable(getattr(functional, name)) for name in functional.__all__)


@pytest.mark.parametrize("op", sorted(BLOCKS))
def test_conformance_blocks(op, conformance):
    arrays = np.load(conformance / "models" / "blocks.npz")
    cases = [c for c in json.loads((conformance / "models" / "blocks.json").read_text())["cases"] if c["op"] == op]
    assert cases
    for case in cases:
        got = block(op, {name: arrays[key] for name, key in case["inputs"].items()}, case["params"])
        got = got if isinstance(got, dict) else {name: got for name in case["outputs"]}
        for name, key in case["outputs"].items():
            want = arrays[key].astype(np.float64)
            assert np.shape(got[name]) == want.shape, case["id"]
            finite = np.isfinite(want)
            scale = max(1.0, np.sqrt(np.mean(want[finite] ** 2)))
            assert np.abs(np.asarray(got[name], np.float64)[finite] - want[finite]).max() / scale <= case.get("tol", 1e-5), case["id"]
            assert np.array_equal(np.asarray(got[name])[~finite], want[~finite]), case["id"]


def test_batch_axes_of_every_pointwise_operation():
    x = normal(2, 3, 4, 10)
    weight, bias = normal(10, seed=1), normal(10, seed=2)
    close(functional.layer_norm(x, weight, bias), ops.layer_norm(x.astype(float), weight, bias))
    close(functional.rms_norm(x, weight), ops.rms_norm(x.astype(float), weight))
    close(functional.softmax(x), ops.softmax(x.astype(float)))
    close(functional.log_softmax(x), ops.log_softmax(x.astype(float)))
    close(functional.softcap(x, 2.0), ops.softcap(x.astype(float), 2.0))
    for name, form in (("none", ops.gelu), ("tanh", ops.gelu_tanh), ("quick", ops.gelu_quick)):
        close(functional.gelu(x, name), form(x.astype(float)))
    for name in ("relu", "silu", "sigmoid"):
        close(getattr(functional, name)(x), getattr(ops, name)(x.astype(float)))


def test_inputs_stay_as_they_were():
    x = normal(2, 3, 5, 8)
    kept = x.copy()
    for function in (functional.softmax, functional.log_softmax, functional.relu, functional.layer_norm, functional.rms_norm):
        function(x)
    functional.softcap(x, 1.0)
    functional.rotary(x, np.arange(5))
    functional.attention(x, x, x)
    assert np.array_equal(x, kept)


def test_other_dtypes_and_layouts_are_converted():
    x = np.arange(24).reshape(4, 6)
    close(functional.softmax(x.T), ops.softmax(x.T.astype(float)))
    close(functional.softmax(normal(6, 4).astype(np.float16).T), ops.softmax(normal(6, 4).astype(np.float16).T.astype(float)))


def test_softmax_mask_broadcasts():
    x = normal(2, 3, 7)
    mask = np.array([1, 1, 0, 1, 0, 1, 1])
    close(functional.softmax(x, mask), ops.softmax(x.astype(float), mask))


def test_linear_and_feed_forward():
    x, up, down, gate = normal(2, 3, 8), normal(20, 8, seed=1), normal(8, 20, seed=2), normal(20, 8, seed=3)
    wide = [a.astype(float) for a in (x, up, down, gate)]
    close(functional.linear(x, up, up[:, 0]), ops.linear(wide[0], wide[1], wide[1][:, 0]), 1e-5)
    for activation in ("relu", "gelu", "silu"):
        plain = functional.feed_forward(x, up, down, activation=activation, up_bias=up[:, 0], down_bias=down[:, 1])
        close(plain, ops.feed_forward(wide[0], wide[1], wide[2], activation=activation, up_bias=wide[1][:, 0], down_bias=wide[2][:, 1]), 1e-4)
        gated = functional.feed_forward(x, up, down, activation=activation, gate=gate, gate_bias=gate[:, 0])
        close(gated, ops.feed_forward(*wide[:3], activation=activation, gate=wide[3], gate_bias=wide[3][:, 0]), 2e-4)
    assert functional.linear(np.zeros((0, 8)), up).shape == (0, 20)
    assert (functional.linear(np.zeros((2, 0)), np.zeros((3, 0)), np.arange(3)) == np.arange(3)).all()


def test_rotary_broadcasts_positions_and_scales():
    x = normal(2, 3, 5, 12)
    scaling = RopeScaling("yarn", factor=4.0, original_max_positions=64)
    inverse, factor = positions.rope_frequencies(8, 500.0, scaling, max_positions=256)
    cos, sin = positions.rope_angles(np.arange(5), inverse, factor)
    got = functional.rotary(x, np.arange(5), theta=500.0, rotary_dim=8, scaling=scaling, max_positions=256)
    close(got, ops.rotary(x.astype(float), cos, sin))
    assert factor > 1
    close(functional.rotary(x[0], np.arange(5)), functional.rotary(x, np.arange(5))[0])


@pytest.mark.parametrize("shape", [(3, 5, 9), (3, 1, 9), (1, 5, 9), (2, 3, 5, 9), (2, 1, 1, 9), (9,), (1, 5, 1), (2, 9)])
def test_attention_masks_of_every_shape(shape):
    query, key, value = normal(2, 3, 5, 8), normal(2, 3, 9, 8, seed=1), normal(2, 3, 9, 8, seed=2)
    mask = np.random.default_rng(3).integers(0, 2, shape)
    close(functional.attention(query, key, value, mask=mask), ops.attention(*(a.astype(float) for a in (query, key, value)), mask=mask))
    bias = normal(*(shape if shape != (2, 9) else (9,)), seed=4)
    want = ops.attention(*(a.astype(float) for a in (query, key, value)), mask=mask, bias=bias, causal=True)
    close(functional.attention(query, key, value, mask=mask, bias=bias, causal=True), want)


def test_attention_without_batch_and_with_two_batch_axes():
    query, key, value = normal(4, 5, 8), normal(2, 7, 8, seed=1), normal(2, 7, 3, seed=2)
    want = ops.attention(*(a.astype(float) for a in (query, key, value)), causal=True, slopes=positions.alibi_slopes(4))
    close(functional.attention(query, key, value, causal=True, slopes=positions.alibi_slopes(4)), want)
    many = [np.broadcast_to(a, (2, 3, *a.shape)) for a in (query, key, value)]
    close(functional.attention(*many, causal=True, slopes=positions.alibi_slopes(4)), np.broadcast_to(want, (2, 3, *want.shape)))


def test_attention_may_have_more_queries_than_keys():
    query, key = normal(1, 2, 9, 4), normal(1, 2, 5, 4, seed=1)
    want = ops.attention(query.astype(float), key.astype(float), key.astype(float), causal=True)
    close(functional.attention(query, key, key, causal=True), want)
    assert (want[:, :, :4] == 0).all()
    with pytest.raises(OptionError, match="before the first key"):
        functional.attention(query, key, key)
    close(functional.attention(query, key, key, first_query=0), ops.attention(*(a.astype(float) for a in (query, key, key)), first_query=0))


def test_padding_keys_may_hold_anything():
    query, key, value = normal(2, 2, 5, 8), normal(2, 2, 9, 8, seed=1), normal(2, 2, 9, 8, seed=2)
    mask = np.array([[1] * 9, [1] * 6 + [0] * 3])
    want = functional.attention(query, key, value, mask=mask)
    key[1, :, 6:] = value[1, :, 6:] = np.nan
    assert np.array_equal(functional.attention(query, key, value, mask=mask), want)


@pytest.mark.parametrize("kind", ["int8", "int4", "int4m"])
def test_quantize_loses_half_a_step_at_most(kind):
    weight = normal(2, 5, 70)
    codes, scales, minima = functional.quantize(weight, kind)
    assert codes.shape == weight.shape and scales.shape == (2, 5, 3)
    step = np.repeat(np.abs(scales), 32, -1)[..., :70]
    # The 4-bit kinds trade the ends of a group, clipped by up to a step, for a finer one.
    slack = 0.501 if kind == "int8" else 1.01
    assert (np.abs(functional.dequantize(codes, scales, minima) - weight) <= slack * step).all()


def test_wrong_arguments_are_refused_by_name():
    x = normal(2, 8)
    for call, message in (
        (lambda: functional.layer_norm(x, np.ones(7)), "weight"),
        (lambda: functional.gelu(x, "cubic"), "cubic"),
        (lambda: functional.softcap(x, 0.0), "positive"),
        (lambda: functional.linear(x, normal(3, 7)), "weight"),
        (lambda: functional.linear(x, normal(3, 8), np.ones(4)), "bias"),
        (lambda: functional.softmax(1.0), "axes"),
        (lambda: functional.rotary(normal(1, 2, 8), [0, 1], rotary_dim=10), "rotary_dim"),
        (lambda: functional.rotary(normal(1, 2, 8), [0, 1], rotary_dim=5), "even"),
        (lambda: functional.attention(normal(3, 2, 8), normal(2, 2, 8), normal(2, 2, 8)), "do not fit"),
        (lambda: functional.attention(normal(2, 2, 8), normal(2, 2, 8), normal(2, 2, 8), slopes=[1.0]), "slopes"),
        (lambda: functional.attention(normal(2, 2, 8), normal(2, 2, 8), normal(2, 2, 8), mask=np.ones(3)), "broadcast"),
        (lambda: functional.quantize(x, "int3"), "int3"),
    ):
        with pytest.raises(OptionError, match=message):
            call()
