"""The scheduler on the compiled engine: equal tokens alone, together, in chunks, from cached prefixes, with drafts, in little memory."""

import numpy as np
import pytest

from cygnet.engine import Engine
from cygnet.generation.options import GenerationOptions
from cygnet.generation.scheduler import Scheduler
from cygnet.generation.scoring import score, score_pairs
from cygnet.generation.tasks import Request
from tests.engine import tiny


def outcome(generations):
    return [(g.ids, g.finish_reason, g.score, g.logprobs) for g in generations]


SETTINGS = [
    {"max_new_tokens": 12},
    {"temperature": 0.9, "seed": 4, "max_new_tokens": 9, "logprobs": 2},
    {"temperature": 1.0, "top_p": 0.8, "seed": 1, "n": 3, "max_new_tokens": 7},
    {"num_beams": 4, "num_return_sequences": 2, "max_new_tokens": 8, "eos_token_id": [5, 9]},
    {"repetition_penalty": 1.3, "min_new_tokens": 3, "eos_token_id": 7, "max_new_tokens": 15},
]


@pytest.fixture(scope="module", params=["decoder", "encoder_decoder"])
def model(request):
    """Makes engines of one tiny model, and its requests."""
    spec = getattr(tiny, request.param)()
    tensors = tiny.tensors(spec)
    rng = np.random.RandomState(0)

    def prompt(length):
        return rng.randint(0, tiny.VOCAB, length).tolist()

    requests = []
    for number, options in enumerate(SETTINGS * 3):
        options, ids = GenerationOptions.create(None, **options), prompt(1 + 11 * number)
        requests.append(Request(ids, options) if request.param == "decoder" else Request([0], options, source_ids=ids))
    return lambda **kwargs: Engine(spec, tensors, threads=2, **kwargs), requests


@pytest.fixture(scope="module")
def alone(model):
    make, requests = model
    engine = make()
    found = []
    for request in requests:
        scheduler = Scheduler(engine, reuse_prefixes=False)
        found.append(outcome(scheduler.submit(request).result()))
        scheduler.close()
    assert engine.blocks_used == 0
    return found


@pytest.mark.parametrize("settings", [{}, {"chunk_tokens": 7, "prompt_tokens": 30}, {"reuse_prefixes": False, "chunk_tokens": 1}])
def test_together_as_alone(model, alone, settings):
    make, requests = model
    engine = make()
    scheduler = Scheduler(engine, **settings)
    for _ in range(2):
        assert [outcome(found) for found in scheduler.run(requests)] == alone
    scheduler.close()
    assert engine.blocks_used == 0


def test_in_little_memory(model, alone):
    make, requests = model
    engine = make(cache_bytes=300_000)
    scheduler = Scheduler(engine)
    assert [outcome(found) for found in scheduler.run(requests)] == alone
    scheduler.close()
    assert engine.blocks_used == 0


def test_speculation_changes_nothing():
    spec = tiny.decoder()
    engine, draft = (Engine(spec, tiny.tensors(spec, seed), threads=2) for seed in (0, 1))
    scheduler = Scheduler(engine, draft=draft)
    prompt = np.random.RandomState(3).randint(0, tiny.VOCAB, 40).tolist() * 2
    for options in SETTINGS[:3] + SETTINGS[4:]:
        kinds = (None, "prompt-lookup", "draft-model")
        requests = [Request(prompt, GenerationOptions.create(None, speculation=kind, **options)) for kind in kinds]
        plain, *drafted = [outcome(found) for found in scheduler.run(requests)]
        assert drafted == [plain, plain]
    scheduler.close()
    assert engine.blocks_used == draft.blocks_used == 0


def test_a_repeated_prefix_is_taken_from_memory():
    spec = tiny.decoder()
    scheduler = Scheduler(Engine(spec, tiny.tensors(spec), threads=2))
    prompt = np.random.RandomState(3).randint(0, tiny.VOCAB, 1000).tolist()
    first, second = (scheduler.submit(Request(prompt, GenerationOptions(max_new_tokens=4))).result()[0] for _ in range(2))
    assert second.ids == first.ids
    assert first.usage.cached_tokens == 0 and 1000 - scheduler.engine.block_tokens <= second.usage.cached_tokens < 1000
    scheduler.close()


def test_cancelling_and_going_on(model):
    make, requests = model
    scheduler = Scheduler(make(), chunk_tokens=16)
    wanted = outcome(scheduler.submit(requests[0]).result())
    for request in requests:
        handle = scheduler.submit(request)
        next(iter(handle), None)
        handle.cancel()
        assert handle.result(10)
    assert outcome(scheduler.submit(requests[0]).result()) == wanted
    scheduler.close()
    assert scheduler.engine.blocks_used == 0


def test_scores_are_those_of_one_pass(model):
    make, requests = model
    engine = make()
    scheduler = Scheduler(engine)
    for request in requests[1:6]:
        source = None if request.source_ids is None else engine.encode([request.source_ids])[0]
        ids = [*request.prompt_ids, 5, 6, 7]
        sequence = engine.sequence(source)
        rows = engine.forward([(sequence, ids[:-1])], rows="all").astype(np.float64)
        sequence.release()
        rows -= np.log(np.exp(rows - rows.max(-1, keepdims=True)).sum(-1, keepdims=True)) + rows.max(-1, keepdims=True)
        wanted = rows[np.arange(len(rows)), ids[1:]]
        if source is None:
            [found] = score(scheduler, [ids])
        else:
            source.release()
            [found] = score_pairs(scheduler, [request.source_ids], [ids[1:]], ids[:1])
        assert found.logprobs == pytest.approx(wanted, abs=1e-5)
    scheduler.close()
    assert engine.blocks_used == 0
