"""Beam search: scores, early stopping, n-best, forced and barred tokens, groups, memory."""

import numpy as np
import pytest

from cygnet.errors import DecodingError
from cygnet.generation.batch import run_step
from cygnet.generation.beam import BeamSearch
from cygnet.generation.beam_task import BeamTask
from cygnet.generation.options import GenerationOptions
from cygnet.generation.prefix_cache import PrefixCache
from cygnet.generation.tasks import Request

from .fakes import HashEngine, Letters, TableEngine


def search(engine, prompt=(1,), *, decoder=None, source=None, **options):
    task = BeamTask(Request(list(prompt), GenerationOptions.create(None, **options), decoder, source), engine.max_context)
    encoded = engine.encode([source])[0] if source else None
    task.begin(engine, PrefixCache(engine, enabled=False), encoded)
    while not task.finished:
        run_step(engine, [task], 5)
    task.close()
    if encoded:
        encoded.release()
    engine.assert_clean()
    return task.results()


def log_softmax(x):
    x = x.astype(np.float64) - x.max()
    return x - np.log(np.exp(x).sum())


def by_definition(next_logprobs, num_beams, end_ids, limit, penalty=1.0, early=False):
    """Beam search over lists, for any function from ids to log-probabilities."""
    running, finished = [((), 0.0)], []
    for t in range(1, limit + 1):
        every = [((*ids, token), total + lp) for ids, total in running for token, lp in enumerate(next_logprobs(ids)) if np.isfinite(lp)]
        best = sorted(every, key=lambda pair: -pair[1])[: max(2, 1 + len(end_ids)) * num_beams]
        done = [ids[-1] in end_ids or t == limit for ids, _ in best]
        if not (early is True and len(finished) == num_beams):
            finished += [(ids, total / t**penalty) for (ids, total), d in list(zip(best, done, strict=True))[:num_beams] if d]
            finished = sorted(finished, key=lambda pair: -pair[1])[:num_beams]
        running = [pair for pair, d in zip(best, done, strict=True) if not d][:num_beams]
        if not running:
            break
        reach = limit if early == "never" and penalty > 0 else t
        if len(finished) == num_beams and (early is True or running[0][1] / reach**penalty <= finished[-1][1]):
            break
    return finished


@pytest.mark.parametrize("early", [False, True, "never"])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0, -1.0])
def test_by_definition(early, penalty):
    for seed, (beams, ends, limit) in enumerate([(2, [3], 6), (4, [3, 7], 8), (5, [], 4), (3, [1, 2, 3], 10), (12, [0], 5)]):
        engine = HashEngine(vocab_size=15, seed=seed, scale=1.5)
        found = search(
            engine, [5, 6], num_beams=beams, eos_token_id=ends, max_new_tokens=limit, length_penalty=penalty, early_stopping=early,
            num_return_sequences=beams,
        )  # fmt: skip
        wanted = by_definition(lambda ids, e=engine: log_softmax(e.logits([5, 6, *ids], None)), beams, ends, limit, penalty, early)
        assert [tuple(g.ids) for g in found] == [ids for ids, _ in wanted]
        assert [g.score for g in found] == pytest.approx([s for _, s in wanted], abs=1e-5)


def test_the_score_does_not_depend_on_the_prompt_length():
    flat = np.zeros((1, 4, 4), np.float32)
    scores = {round(search(TableEngine(flat), [1] * n, num_beams=2, max_new_tokens=3, length_penalty=2.0)[0].score, 6) for n in (1, 10, 50)}
    assert scores == {round(-3 * np.log(4) / 9, 6)}


def test_a_longer_hypothesis_that_still_wins_is_waited_for():
    # Two hypotheses end early; the best after length normalisation ends at the third step.
    table = np.full((3, 6, 6), -np.inf)
    table[0, 0, [1, 2, 5]] = np.log([0.35, 0.25, 0.4])
    table[1, 1, [5, 3]] = np.log([0.3, 0.7])
    table[1, 2, [5, 3]] = np.log([0.9, 0.1])
    table[2, 3, 5] = 0.0
    options = {"num_beams": 2, "eos_token_id": 5, "max_new_tokens": 3}
    patient = search(TableEngine(table), [0], early_stopping=False, **options)[0]
    hasty = search(TableEngine(table), [0], early_stopping=True, **options)[0]
    assert patient.ids == [1, 3, 5]
    assert patient.score == pytest.approx(np.log(0.35 * 0.7) / 3)
    assert hasty.ids != patient.ids and hasty.score < patient.score


def test_memory_is_shared_and_never_copied_between_blocks():
    engine = HashEngine(block_tokens=4)
    task = BeamTask(Request([2] * 40, GenerationOptions(num_beams=8, max_new_tokens=20)), None)
    task.begin(engine, PrefixCache(engine, enabled=False), None)
    most = 0
    while not task.finished:
        run_step(engine, [task], 100)
        most = max(most, engine.blocks_total - engine.blocks_free)
    task.close()
    engine.assert_clean()
    assert engine.batches[0] == [40] and all(batch == [1] * len(batch) for batch in engine.batches[1:])
    assert most <= 10 + 8 * 6


def test_forced_tokens_and_prefix():
    found = search(HashEngine(), [1], num_beams=3, forced_bos=7, forced_eos=2, eos_token_id=2, max_new_tokens=5, num_return_sequences=3)
    assert all(g.ids[0] == 7 and g.ids[-1] == 2 for g in found)
    plain = by_definition(lambda ids: log_softmax(HashEngine().logits([1, 9, 8, *ids], None)), 3, [2], 4)
    [result] = search(HashEngine(), [1], num_beams=3, prefix_ids=[9, 8], eos_token_id=2, max_new_tokens=4)
    assert result.ids == [9, 8, *plain[0][0]] and result.score == pytest.approx(plain[0][1], abs=1e-5)


def test_allowed_tokens_and_processors_act_on_log_probabilities():
    engine = HashEngine()

    def processed(ids):
        x = log_softmax(engine.logits([1, *ids], None))
        for token in {1, *ids}:
            x[token] *= 1.5
        x[4] += 0.7
        return x

    wanted = by_definition(processed, 3, [2], 6)
    [result] = search(engine, [1], num_beams=3, eos_token_id=2, max_new_tokens=6, repetition_penalty=1.5, logit_bias={4: 0.7})
    assert tuple(result.ids) == wanted[0][0] and result.score == pytest.approx(wanted[0][1], abs=1e-5)
    [result] = search(engine, [1], num_beams=3, max_new_tokens=4, allowed_tokens=lambda ids: [5, 6 + len(ids)])
    assert all(token in (5, 7 + at) for at, token in enumerate(result.ids))


def test_logprobs_follow_the_winning_beam():
    engine = HashEngine()
    [result] = search(engine, [1], num_beams=4, max_new_tokens=6, logprobs=3)
    wanted = [log_softmax(engine.logits([1, *result.ids[:i]], None)) for i in range(6)]
    assert [entry.logprob for entry in result.logprobs] == pytest.approx([row[t] for row, t in zip(wanted, result.ids, strict=True)], abs=1e-5)
    assert [entry.id for entry in result.logprobs] == result.ids
    assert [[i for i, _ in entry.top] for entry in result.logprobs] == [np.argsort(-row)[:3].tolist() for row in wanted]
    assert sum(entry.logprob for entry in result.logprobs) / 6 == pytest.approx(result.score, abs=1e-5)


def test_groups_are_pushed_apart():
    engine = HashEngine(scale=4.0)
    alike = search(engine, num_beams=4, num_beam_groups=4, max_new_tokens=4, num_return_sequences=4)
    assert len({tuple(g.ids) for g in alike}) == 1
    apart = search(engine, num_beams=4, num_beam_groups=4, diversity_penalty=50.0, max_new_tokens=4, num_return_sequences=4)
    for step in range(4):
        assert len({g.ids[step] for g in apart}) == 4
    first = search(engine, num_beams=2, max_new_tokens=4)[0]
    pair = search(engine, num_beams=4, num_beam_groups=2, diversity_penalty=50.0, max_new_tokens=4, num_return_sequences=4)
    assert first.ids in [g.ids for g in pair]


def test_one_group_alone_is_plain_beam_search():
    plain, grouped = BeamSearch(2, [1], 3), BeamSearch(2, [1], 3)
    rng = np.random.default_rng(0)
    while not plain.done:
        rows = rng.standard_normal((len(plain.running), 9)).astype(np.float32)
        assert plain.advance(rows) == grouped.advance(rows)
    assert plain.finished == grouped.finished


def test_text_and_stop_strings():
    strings = [chr(97 + i % 26) for i in range(40)]
    options = {"num_beams": 2, "max_new_tokens": 5, "decoder": lambda: Letters(strings)}
    [whole] = search(HashEngine(), **options)
    assert whole.text == "".join(strings[i] for i in whole.ids) and whole.finish_reason == "length"
    [cut] = search(HashEngine(), stop=whole.text[1:3], **options)
    assert (cut.ids, cut.text, cut.finish_reason, cut.stop) == (whole.ids, whole.text[:1], "stop", whole.text[1:3])


def test_encoder_decoder():
    wanted = by_definition(lambda ids: log_softmax(HashEngine().logits([0, *ids], type("S", (), {"ids": (4, 5)}))), 3, [2], 5)
    [result] = search(HashEngine(), [0], source=[4, 5], num_beams=3, eos_token_id=2, max_new_tokens=5)
    assert tuple(result.ids) == wanted[0][0] and result.usage.prompt_tokens == 2


def test_nothing_to_choose_from_and_nothing_wanted():
    with pytest.raises(DecodingError):
        search(TableEngine(np.full((1, 4, 4), np.nan)), num_beams=2)
    assert search(HashEngine(), num_beams=2, max_new_tokens=0)[0].ids == []
