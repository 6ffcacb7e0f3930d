"""How much of a prompt a step reads: no more than leaves the step's work at that of one chunk alone."""

import threading

import pytest

from cygnet.generation.options import GenerationOptions
from cygnet.generation.scheduler import Scheduler
from cygnet.generation.step_budget import prompt_budget
from cygnet.generation.tasks import ALL, LAST, NONE, Feed, Request

from .fakes import HashEngine


class Costly(HashEngine):
    """A token costs 10, a tenth more for each key, and 5 with logits."""

    def token_cost(self, keys, logits):
        return 10 + keys / 10 + (5 if logits else 0)


def feed(engine, length, tokens=1, rows=LAST):
    sequence = engine.sequence()
    sequence.length = length
    return Feed(sequence, [1] * tokens, rows)


@pytest.mark.parametrize("read", [0, 100, 5000])
@pytest.mark.parametrize("answers", [[], [1], [10, 300], [5] * 20])
def test_a_step_costs_no_more_than_a_chunk(answers, read):
    engine = Costly()
    decoded = [feed(engine, length) for length in answers]
    budget = prompt_budget(engine, 128, decoded, read)
    token = engine.token_cost(read + 64, False)
    spent = budget * token + sum(engine.token_cost(3 * (length + 1), True) for length in answers)
    assert spent <= 128 * token
    assert (budget == 128) == (not answers)
    assert spent > (118 - 1.5 * len(answers)) * token


def test_a_full_batch_lets_prompts_go_on():
    engine = Costly()
    assert prompt_budget(engine, 128, [feed(engine, 4000) for _ in range(100)], 0) == 16
    assert prompt_budget(engine, 1, [feed(engine, 4000)], 0) == 1


def test_drafts_and_rows_without_logits_count():
    engine = Costly()
    one, many, silent = (prompt_budget(engine, 128, [feed(engine, 10, n, rows)], 0) for n, rows in ((1, LAST), (8, ALL), (1, NONE)))
    assert many < one <= silent


def test_the_scheduler_reads_less_beside_answers():
    engine = Costly(block_tokens=4)
    scheduler = Scheduler(engine, chunk_tokens=16, prompt_tokens=64, reuse_prefixes=False)
    gate = threading.Event()
    engine.before_forward = lambda batch: gate.wait(10)
    handles = [scheduler.submit(Request(ids, GenerationOptions(max_new_tokens=40))) for ids in ([1, 2], [3] * 300)]
    gate.set()
    for handle in handles:
        handle.result()
    beside = [max(counts) for counts in engine.batches if len(counts) == 2 and max(counts) > 1]
    # The first step reads both prompts where both have come by then; an answer is decoded in all others.
    later = beside[1:] if beside[0] == 62 else beside
    assert len(later) > 5 and 1 < max(later) < 16
    scheduler.close()
