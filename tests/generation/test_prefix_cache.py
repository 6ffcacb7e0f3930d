"""Reuse of computed prompts: what is found, what leaves first, and that nothing is lost or held twice."""

import random
import threading

import pytest

from cygnet.generation.options import GenerationOptions
from cygnet.generation.prefix_cache import PrefixCache
from cygnet.generation.scheduler import Scheduler
from cygnet.generation.tasks import Request

from .fakes import HashEngine


def read(engine, ids):
    sequence = engine.sequence()
    engine.forward([(sequence, ids)], rows="none")
    return sequence


def remember(engine, cache, ids):
    """As a request does: reads what the cache does not have."""
    sequence, length = cache.lookup(ids)
    sequence = sequence or engine.sequence()
    engine.forward([(sequence, ids[length:])], rows="none")
    cache.insert(sequence, ids)
    sequence.release()


def found(cache, ids):
    sequence, length = cache.lookup(ids)
    if sequence is None:
        return 0
    assert sequence.ids == ids[:length]
    sequence.release()
    return length


def test_whole_blocks_are_found_and_one_token_is_left():
    engine = HashEngine(block_tokens=4)
    cache = PrefixCache(engine)
    remember(engine, cache, list(range(11)))
    assert len(cache) == 2 and engine.blocks_total - engine.blocks_free == 2
    assert [found(cache, list(range(n))) for n in (1, 4, 5, 8, 9, 30)] == [0, 0, 4, 4, 8, 8]
    assert found(cache, [0, 1, 2, 3, 9, 9, 9, 9, 9]) == 4
    assert found(cache, [9, *range(10)]) == 0
    cache.clear()
    engine.assert_clean()


def test_what_a_prompt_will_push_out_leaves_before_it_is_read():
    engine = HashEngine(block_tokens=4)
    cache = PrefixCache(engine, kept_tokens=16)
    remember(engine, cache, [1] * 16)
    used = engine.blocks_total - engine.blocks_free
    cache.expect([1] * 16)
    cache.expect([1] * 8)
    assert len(cache) == 4  # nothing has to leave for what is there
    cache.expect([2] * 8)
    assert len(cache) == 2 and engine.blocks_total - engine.blocks_free == used - 2
    cache.expect([3] * 400)
    assert len(cache) == 0
    engine.assert_clean()


def test_branches_share_blocks():
    engine = HashEngine(block_tokens=4)
    cache = PrefixCache(engine)
    system = list(range(8))
    first, second = [*system, *[20] * 8], [*system, *[21] * 4]
    sequence = read(engine, first)
    cache.insert(sequence, first)
    other, length = cache.lookup(second + [0])
    assert length == 8
    engine.forward([(other, second[8:])], rows="none")
    cache.insert(other, second)
    sequence.release()
    other.release()
    assert len(cache) == 5 == engine.blocks_total - engine.blocks_free
    assert found(cache, first + [0]) == 16 and found(cache, second + [0]) == 12
    cache.clear()
    engine.assert_clean()


def test_the_least_recently_used_leave_first_block_by_block():
    engine = HashEngine(block_tokens=4)
    cache = PrefixCache(engine)
    old, new = [1] * 12, [2] * 12
    remember(engine, cache, old)
    remember(engine, cache, new)
    found(cache, old + [0])
    for left in (8, 4, 0):
        assert cache.evict()
        assert found(cache, new + [0]) == left
        assert found(cache, old + [0]) == 12
    while cache.evict():
        pass
    assert len(cache) == 0
    engine.assert_clean()


def test_prompts_that_nobody_repeats_do_not_pile_up():
    engine = HashEngine(block_tokens=4)
    cache = PrefixCache(engine, kept_tokens=16)
    for first in range(10):
        remember(engine, cache, [first] * 12)
        assert len(cache) == (3 if first == 0 else 4)
    remember(engine, cache, [10] * 40)  # more than is kept: the last sequence is whole all the same
    assert len(cache) == 10 and found(cache, [10] * 41) == 40
    remember(engine, cache, [11] * 12)
    assert len(cache) == 4 and found(cache, [11] * 13) == 12
    cache.clear()
    engine.assert_clean()


def test_prompts_that_come_back_make_more_be_kept():
    engine = HashEngine(block_tokens=4)
    cache = PrefixCache(engine, kept_tokens=8)
    prompts = [[first] * 12 for first in range(4)]
    for _ in range(4):
        for prompt in prompts:
            remember(engine, cache, prompt)
    assert all(found(cache, [*prompt, 5]) == 12 for prompt in prompts)
    cache.clear()
    engine.assert_clean()


def test_random_use_keeps_the_books_straight():
    engine, random_ = HashEngine(block_tokens=2, vocab_size=3), random.Random(0)
    cache = PrefixCache(engine, kept_tokens=random_.randrange(10, 40))
    for _ in range(600):
        ids = [random_.randrange(3) for _ in range(random_.randrange(1, 12))]
        action = random_.random()
        if action < 0.5:
            remember(engine, cache, ids)
            assert found(cache, ids + [0]) == len(ids) // 2 * 2
        elif action < 0.8:
            found(cache, ids)
        else:
            cache.evict()
        assert engine.blocks_total - engine.blocks_free == len(cache)
    cache.clear()
    engine.assert_clean()


def test_a_repeated_prompt_is_not_computed_again():
    engine = HashEngine(block_tokens=4)
    scheduler = Scheduler(engine, prompt_tokens=5000)
    prompt = [i % 40 for i in range(1001)]

    def run(ids, **options):
        before = len(engine.batches)
        [result] = scheduler.submit(Request(ids, GenerationOptions(max_new_tokens=3, **options))).result()
        return result, engine.batches[before]

    cold, batch = run(prompt)
    assert batch == [1001] and cold.usage.cached_tokens == 0
    warm, batch = run(prompt)
    assert batch == [1] and warm.usage.cached_tokens == 1000 and warm.ids == cold.ids
    _, batch = run([*prompt, *cold.ids, 5])
    assert batch[0] <= 5
    beams, batch = run(prompt, num_beams=3)
    assert batch == [1] and beams.usage.cached_tokens == 1000
    scheduler.close()
    engine.assert_clean()


@pytest.mark.parametrize("enabled", [True, False])
def test_reuse_does_not_change_ids(enabled):
    scheduler = Scheduler(HashEngine(block_tokens=2, blocks=40), reuse_prefixes=enabled)
    random_ = random.Random(1)
    for _ in range(40):
        prompt = [random_.randrange(2) for _ in range(random_.randrange(1, 12))]
        alone = Scheduler(HashEngine(), reuse_prefixes=False)
        request = Request(prompt, GenerationOptions(max_new_tokens=4))
        assert scheduler.submit(request).result()[0].ids == alone.submit(request).result()[0].ids
        alone.close()
    scheduler.close()
    scheduler.engine.assert_clean()


@pytest.mark.parametrize("beams", [1, 2])
def test_equal_prompts_that_come_together_are_read_once(beams):
    engine = HashEngine(block_tokens=4)
    scheduler = Scheduler(engine, chunk_tokens=8, prompt_tokens=8)
    prompt = [i % 7 for i in range(64)]
    options = GenerationOptions(max_new_tokens=3, num_beams=beams)
    gate = threading.Event()
    engine.before_forward = lambda batch: gate.wait(10)
    handles = [scheduler.submit(Request([*prompt, last], options)) for last in (1, 2, 3, 1)]
    gate.set()
    found = [handle.result() for handle in handles]
    # Each reads for itself at most what lies between the last whole block and its end, and a part that another was reading in the same step.
    assert sum(sum(counts) for counts in engine.batches) < 64 + 4 * (8 + 5 + 3 * beams)
    assert all(own[0].usage.cached_tokens >= 48 for own in found[1:])
    scheduler.close()
    plain = Scheduler(HashEngine(block_tokens=4), reuse_prefixes=False)
    assert [[g.ids for g in plain.submit(Request([*prompt, last], options)).result()] for last in (1, 2, 3, 1)] == [
        [g.ids for g in own] for own in found
    ]
    plain.close()
    assert not engine.live and engine.blocks_free == engine.blocks_total


def test_what_a_cancelled_request_has_read_serves_the_next():
    engine = HashEngine(block_tokens=4)
    scheduler = Scheduler(engine, chunk_tokens=8, prompt_tokens=8)
    prompt = [i % 7 for i in range(64)]
    options = GenerationOptions(max_new_tokens=2)
    handles = []

    def cancel_in_the_fifth_pass(batch):
        if len(engine.batches) == 5:
            handles[0].cancel()

    gate = threading.Event()
    engine.before_forward = lambda batch: (gate.wait(10), cancel_in_the_fifth_pass(batch))
    handles += [scheduler.submit(Request(prompt, options)) for _ in range(2)]
    gate.set()
    first, second = (handle.result() for handle in handles)
    assert first[0].finish_reason == "cancelled" and second[0].finish_reason == "length"
    assert second[0].usage.cached_tokens >= 32
    scheduler.close()
    assert not engine.live
