"""The engine against the NumPy reference, and against itself: the same bits in any batch, at any thread count, cached or not."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from cygnet.architectures.spec import Mixing, NormKind, NormSpec, Placement, QKNorm
from cygnet.architectures.transforms import Computed
from cygnet.engine import Engine
from cygnet.engine_sides import PASS_TOKENS
from cygnet.errors import CacheFull, Cancelled, ContextOverflow, OptionError, OutOfMemory, OutOfRange
from cygnet.reference.model import ReferenceModel
from tests.engine import tiny

WEIGHTS = ("float32", "float16", "int8", "int4")
VARIANTS = {
    "plain": {},
    "window": {"window": 5},
    "softcap": {"softcap": 2.0},
    "post": {"placement": Placement.POST},
    "normed": {"placement": Placement.NORMED},
    "sandwich": {"placement": Placement.SANDWICH},
    "output": {"placement": Placement.OUTPUT},
    "parallel": {"placement": Placement.PARALLEL},
    "parallel-split": {"placement": Placement.PARALLEL_SPLIT},
    "norm-of-heads": {"qk_norm": QKNorm.HEAD, "qk_norm_spec": NormSpec(NormKind.RMS, 1e-6)},
    "norm-behind-rotation": {"qk_norm": QKNorm.HEAD, "qk_norm_spec": NormSpec(NormKind.RMS, 1e-6), "qk_norm_last": True},
    "norm-of-all": {"qk_norm": QKNorm.FULL, "qk_norm_spec": NormSpec(NormKind.RMS, 1e-6)},
    "clip": {"clip_qkv": 0.5},
    "scaled-residual": {"residual_scale": 0.3},
    "recurrent": {"mixing": Mixing.SSRU, "heads": 1, "kv_heads": 1, "head_dim": 48},
    "recurrent-odd": {"mixing": Mixing.SSRU, "width": 77, "heads": 1, "kv_heads": 1, "head_dim": 77, "placement": Placement.OUTPUT},
    "odd-sizes": {"width": 39, "heads": 3, "kv_heads": 1, "head_dim": 14},
}


def ids(n, seed=1):
    return np.random.RandomState(seed).randint(0, tiny.VOCAB, n).tolist()


def engine(spec=None, weights="float32", threads=2, **options):
    spec = spec or tiny.decoder()
    return Engine(spec, tiny.tensors(spec), weights=weights, threads=threads, **options)


def whole(model, tokens):
    return model.forward([(model.sequence(), tokens)], rows="all")


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_reference(variant):
    spec = tiny.decoder(**VARIANTS[variant])
    tokens = ids(70)
    want = ReferenceModel(spec, tiny.tensors(spec)).forward([tokens])[0].logits
    np.testing.assert_allclose(whole(engine(spec), tokens), want, atol=2e-4)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_same_bits_alone_in_a_batch_cached_and_on_any_threads(variant, weights):
    spec = tiny.decoder(**VARIANTS[variant])
    model = engine(spec, weights)
    texts = [ids(n, n) for n in (70, 1, 33, 2)]
    alone = [whole(model, text) for text in texts]
    together = model.forward([(model.sequence(), text) for text in texts], rows="all")
    assert np.array_equal(np.concatenate(alone), together)
    for threads in (1, 3):
        assert np.array_equal(whole(engine(spec, weights, threads), texts[0]), alone[0])
    sequence = model.sequence()
    pieces = [model.forward([(sequence, texts[0][a:b])], rows="all") for a, b in ((0, 40), (40, 41), (41, 43), (43, 70))]
    assert np.array_equal(np.concatenate(pieces), alone[0])
    steps = [model.sequence() for _ in texts]
    for t in range(33):
        model.forward([(s, [text[t]]) for s, text in zip(steps, texts, strict=True) if t < len(text)])
    assert np.array_equal(model.forward([(steps[0], texts[0][33:])], rows="all"), alone[0][33:])


@pytest.mark.parametrize("cache_dtype", ["float32", "float16"])
@pytest.mark.parametrize("variant", ["plain", "window", "clip", "norm-of-heads", "norm-of-all"])
def test_same_bits_over_many_chunks_of_keys(variant, cache_dtype):
    """A token that is decoded shares its keys among the threads by chunks; a prompt does not."""
    spec = tiny.decoder(**{**VARIANTS[variant], **({"window": 300} if variant == "window" else {})})
    tokens = ids(600)
    model = engine(spec, cache_dtype=cache_dtype)
    want = whole(model, tokens)
    for threads in (1, 3):
        other = engine(spec, threads=threads, cache_dtype=cache_dtype)
        sequence, beside = other.sequence(), other.sequence()
        other.forward([(sequence, tokens[:590])], rows="none")
        for t in range(590, 595):
            assert np.array_equal(other.forward([(sequence, [tokens[t]])])[0], want[t])
        # With a neighbour, as several tokens at once, and beside more rows than are shared by chunks.
        assert np.array_equal(other.forward([(beside, [1]), (sequence, [tokens[595]])])[1], want[595])
        assert np.array_equal(other.forward([(sequence, tokens[596:598]), (beside, [1])], rows="all")[:2], want[596:598])
        assert np.array_equal(other.forward([(beside, ids(60)), (sequence, [tokens[598]])])[1], want[598])


def test_keys_and_values_are_float16_unless_weights_are_float32():
    for weights, cache_dtype in (("float32", "float32"), ("float16", "float16"), ("bfloat16", "float16"), ("int8", "float16"), ("int4", "float16")):
        assert engine(weights=weights).cache_dtype == cache_dtype
        assert engine(weights=weights, cache_dtype="float32").cache_dtype == "float32"
    assert engine(tiny.encoder_decoder(), weights="int8").cache_dtype == "float16"
    half, single = engine(cache_dtype="float16", cache_bytes=1 << 20), engine(cache_dtype="float32", cache_bytes=1 << 20)
    assert half.blocks_free == 2 * single.blocks_free
    error = np.abs(whole(half, ids(300)) - whole(single, ids(300))).max()
    assert 0 < error < 0.01
    with pytest.raises(OptionError, match="cache_dtype"):
        engine(cache_dtype="int8")
    with pytest.raises(OptionError, match="cache_dtype"):
        engine(tiny.encoder(), cache_dtype="int8")


@pytest.mark.parametrize("side", ["key", "value", "source"])
def test_numbers_beyond_float16_are_an_error_and_not_a_wrong_result(side):
    spec = tiny.encoder_decoder() if side == "source" else tiny.decoder()
    tensors = tiny.tensors(spec)
    name = "decoder.1.cross.key.weight" if side == "source" else f"decoder.1.attention.{side}.weight"
    large = tensors[name].to_float32() * np.float32(1e6)
    tensors[name] = Computed(large.shape, lambda: large)

    def read(model):
        source = model.encode([ids(40)])[0] if side == "source" else None
        return model.forward([(model.sequence(source), ids(40))], rows="all")

    half, single = (Engine(spec, tensors, weights="float32", threads=2, cache_dtype=kind) for kind in ("float16", "auto"))
    with pytest.raises(OutOfRange, match="cache_dtype"):
        read(half)
    assert half.blocks_used == 0
    assert np.isfinite(read(single)).all()


def test_long_prompts_go_in_passes_with_the_same_bits():
    model = engine()
    tokens = ids(2 * PASS_TOKENS + 37)
    sequence = model.sequence()
    last = model.forward([(model.sequence(), ids(5)), (sequence, tokens)])[1]
    assert sequence.length == len(tokens)
    assert np.array_equal(last, whole(model, tokens)[-1])


def test_forks_share_memory_until_they_write():
    model = engine()
    first = model.sequence()
    model.forward([(first, ids(40))], rows="none")
    before = model.blocks_used
    second = first.fork()
    assert model.blocks_used == before
    a, b = model.forward([(first, [3]), (second, [4])])
    assert model.blocks_used == before + 1
    assert np.array_equal(a, whole(model, ids(40) + [3])[-1])
    assert np.array_equal(b, whole(model, ids(40) + [4])[-1])
    first.truncate(32)
    assert np.array_equal(model.forward([(first, ids(40)[32:])])[0], whole(model, ids(40))[-1])
    first.release()
    second.release()
    assert first.length == 0


def test_a_freed_sequence_gives_its_blocks_back():
    model = engine()
    for _ in range(50):
        model.forward([(model.sequence(), ids(100))])
    assert model.blocks_used == 0


def test_rows_that_are_asked_for():
    model = engine()
    everything = model.forward([(model.sequence(), ids(6)), (model.sequence(), ids(4, 2))], rows="all")
    marked = model.forward([(model.sequence(), ids(6)), (model.sequence(), ids(4, 2))], rows=[False, True])
    assert np.array_equal(marked, everything[-1:])
    assert model.forward([(model.sequence(), ids(6))], rows="none").shape == (0, tiny.VOCAB)
    assert model.forward([]).shape == (0, tiny.VOCAB)


def test_quantised_weights_stay_near():
    exact = whole(engine(), ids(50))
    for weights, limit in (("float16", 0.005), ("int8", 0.03), ("int4", 0.2)):
        error = np.linalg.norm(whole(engine(weights=weights), ids(50)) - exact) / np.linalg.norm(exact)
        assert error < limit, (weights, error)


def test_encoder_equals_the_reference_in_ragged_batches():
    spec = tiny.encoder()
    model = engine(spec)
    texts = [ids(n, n) for n in (1, 40, 64, 2, 17)]
    types = [[i % 2 for i in range(len(text))] for text in texts]
    hidden, offsets = model.hidden(texts, types)
    want = ReferenceModel(spec, tiny.tensors(spec)).forward(texts, type_ids=types)
    for i, reference in enumerate(want):
        np.testing.assert_allclose(hidden[offsets[i] : offsets[i + 1]], reference.hidden, atol=2e-5)
        assert np.array_equal(model.hidden([texts[i]], [types[i]])[0], hidden[offsets[i] : offsets[i + 1]])


@pytest.mark.parametrize("types", [[0.0, 1.0], [0, 2**64], [0, 2**63], [2**32, 0], [0, 2], [0, -1]])
def test_token_types_are_whole_numbers_of_the_table(types):
    model = engine(tiny.encoder())
    with pytest.raises(OptionError, match="token types must be whole numbers from 0 to 1"):
        model.hidden([[], ids(2)], [[], types])
    assert np.array_equal(model.hidden([[], ids(2)], [[], np.uint8([0, 1])])[0], model.hidden([ids(2)], [[0, 1]])[0])
    assert not np.array_equal(model.hidden([ids(2)])[0], model.hidden([ids(2)], [[0, 1]])[0])


def test_an_empty_text_does_not_disturb_the_batch():
    model = engine(tiny.encoder())
    hidden, offsets = model.hidden([[], ids(9), []])
    assert offsets.tolist() == [0, 0, 9, 9]
    assert np.array_equal(hidden, model.hidden([ids(9)])[0])
    # As many texts as tokens, and still not a token each.
    assert np.array_equal(model.hidden([[], ids(2)])[0], model.hidden([ids(2)])[0])
    assert model.hidden([])[0].shape == (0, 48)


def test_encoder_decoder_equals_the_reference():
    spec = tiny.encoder_decoder()
    model = engine(spec)
    sources, targets = [ids(n, n) for n in (40, 1, 9)], [ids(n, 50 + n) for n in (5, 35, 1)]
    encoded = model.encode(sources)
    logits = model.forward([(model.sequence(source), target) for source, target in zip(encoded, targets, strict=True)], rows="all")
    want = [r.logits for r in ReferenceModel(spec, tiny.tensors(spec)).forward(sources, decoder_ids=targets)]
    np.testing.assert_allclose(logits, np.concatenate(want), atol=2e-4)
    alone = model.forward([(model.sequence(model.encode([sources[1]])[0]), targets[1])], rows="all")
    assert np.array_equal(alone, logits[5:40])


def test_an_empty_source_gives_finite_results():
    model = engine(tiny.encoder_decoder())
    empty, full = model.encode([[], ids(7)])
    together = model.forward([(model.sequence(empty), [1, 2]), (model.sequence(full), [1, 2])], rows="all")
    assert np.isfinite(together).all()
    assert np.array_equal(together[2:], model.forward([(model.sequence(full), [1, 2])], rows="all"))


def test_refuses_what_has_no_meaning_and_works_on():
    model = engine(tiny.decoder(max_positions=64))
    sequence = model.sequence()
    model.forward([(sequence, [1, 2, 3])])
    for batch, error in (
        ([(sequence, [tiny.VOCAB])], OptionError),
        ([(sequence, [-1])], OptionError),
        ([(sequence, ["a"])], OptionError),
        ([(sequence, [])], OptionError),
        ([(sequence, [1]), (sequence, [2])], OptionError),
        ([(sequence, ids(62))], ContextOverflow),
    ):
        with pytest.raises(error):
            model.forward(batch)
        assert sequence.length == 3
    with pytest.raises(ContextOverflow, match=r"65.*64"):
        model.forward([(sequence, ids(62))])
    with pytest.raises(OptionError):
        sequence.truncate(4)
    with pytest.raises(OptionError):
        engine(threads=0)
    with pytest.raises(OptionError):
        engine(weights="int3")
    with pytest.raises(OptionError):
        engine(tiny.decoder(max_positions=64), max_context=65)
    assert np.array_equal(model.forward([(sequence, [4])])[0], whole(model, [1, 2, 3, 4])[-1])


def test_a_full_cache_refuses_before_it_changes_anything():
    model = engine(cache_bytes=3 * 2 * 2 * 2 * 16 * 32 * 4)
    first = model.sequence()
    model.forward([(first, ids(60))])
    other = model.sequence()
    with pytest.raises(CacheFull, match="1 of 3"):
        model.forward([(other, ids(40))])
    assert other.length == 0 and model.blocks_used == 2
    model.forward([(other, ids(30))])


def test_cancel_stops_a_pass_and_leaves_the_sequence():
    model = engine(tiny.decoder(max_positions=100000, layers=8, width=256))
    sequence = model.sequence()
    model.forward([(sequence, ids(10))])
    over = threading.Event()

    def cancel():  # again and again: one that falls between two passes stops nothing
        while not over.wait(0.02):
            model.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(Cancelled):
        for _ in range(100):
            model.forward([(model.sequence(), ids(4000))])
    over.set()
    canceller.join()
    assert np.array_equal(model.forward([(sequence, [5])])[0], whole(model, ids(10) + [5])[-1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes():
    model = engine(threads=4)
    want = whole(model, ids(50))
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(whole(model, ids(50)), want) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(whole(model, ids(50)), want)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_in_the_middle_of_a_pass_computes():
    model = engine(threads=2)
    want, over, begun = whole(model, ids(50)), threading.Event(), threading.Event()

    def compute():
        while not over.is_set():
            begun.set()
            model.forward([(model.sequence(), ids(2000))])

    caller = threading.Thread(target=compute)
    caller.start()
    begun.wait()
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(whole(model, ids(50)), want) else 1)
    for _ in range(300):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
    over.set()
    caller.join()
    assert done and status == 0


def test_many_callers_get_their_own_results():
    model = engine()
    texts = [ids(5 + 3 * n, n) for n in range(8)]
    want = [whole(model, text) for text in texts]
    wrong = []

    def work(i):
        for _ in range(20):
            if not np.array_equal(whole(model, texts[i]), want[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and model.blocks_used == 0


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("cannot allocate 5 bytes")])
def test_no_memory_is_one_kind_of_error(monkeypatch, error):
    model = engine()

    def none_left(*args, **kwargs):
        raise error

    monkeypatch.setattr(model._sides["decoder"].tables, "prepare", none_left)
    for work in (lambda: whole(model, ids(5)), lambda: model.hidden([ids(5)])):
        with pytest.raises(OutOfMemory, match="no memory is left"):
            work()
    monkeypatch.undo()
    assert model.blocks_used == 0 and np.isfinite(whole(model, ids(5))).all()
