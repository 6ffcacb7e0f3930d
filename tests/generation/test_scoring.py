"""Teacher-forced log-probabilities: against log-softmax of the whole prefix, in windows, for source-target pairs."""

import numpy as np
import pytest

from cygnet.errors import ContextOverflow, OptionError
from cygnet.generation.scheduler import Scheduler
from cygnet.generation.scoring import score, score_pairs

from .fakes import HashEngine


def value(engine, prefix, token, source=None):
    row = engine.logits(list(prefix), source).astype(np.float64)
    return row[token] - np.log(np.exp(row).sum())


@pytest.fixture
def scheduler():
    scheduler = Scheduler(HashEngine(max_context=32), prompt_tokens=20, chunk_tokens=5)
    yield scheduler
    scheduler.close()
    scheduler.engine.assert_clean()


def text(length, seed=0):
    return np.random.default_rng(seed).integers(0, 40, length).tolist()


def test_a_batch_of_texts(scheduler):
    texts = [text(32), text(5, 1), text(2, 2), text(1, 3), []]
    for ids, found in zip(texts, score(scheduler, texts), strict=True):
        wanted = [value(scheduler.engine, ids[:i], ids[i]) for i in range(1, len(ids))]
        assert found.ids == ids[1:]
        assert found.logprobs == pytest.approx(wanted, abs=1e-5)
        if wanted:
            assert found.perplexity == pytest.approx(np.exp(-np.mean(wanted)), rel=1e-5)
            assert found.total == pytest.approx(sum(wanted), rel=1e-5)


@pytest.mark.parametrize(("window", "stride"), [(8, 3), (8, 7), (8, 1), (None, 10), (2, 1), (16, 8)])
def test_windows_score_every_token_once_with_enough_before_it(scheduler, window, stride):
    ids = text(75)
    [found] = score(scheduler, [ids], window=window, stride=stride)
    window = window or 32
    # By definition: the first window that reads the token before it.
    wanted = []
    for i in range(1, len(ids)):
        start = next(start for start in range(0, len(ids), stride) if i - 1 < start + window)
        wanted.append(value(scheduler.engine, ids[start:i], ids[i]))
        assert start == 0 or i - start > window - stride
    assert found.logprobs == pytest.approx(wanted, abs=1e-5)


def test_long_texts_need_a_stride(scheduler):
    with pytest.raises(ContextOverflow, match="33.*32"):
        score(scheduler, [text(33)])
    for window, stride in ((40, 3), (1, 1), (8, 8), (8, 0)):
        with pytest.raises(OptionError):
            score(scheduler, [text(50)], window=window, stride=stride)


def test_pairs(scheduler):
    sources, targets = [text(4), text(7, 1), text(3, 2)], [text(6, 3), text(2, 4), []]
    found = score_pairs(scheduler, sources, targets, [0])
    for source, target, got in zip(sources, targets, found, strict=True):
        encoded = scheduler.engine.encode([source])[0]
        wanted = [value(scheduler.engine, [0, *target[:i]], target[i], encoded) for i in range(len(target))]
        encoded.release()
        assert got.logprobs == pytest.approx(wanted, abs=1e-5)
