"""One request from prompt to result: greedy, sampling, samples of one prompt, stops, lengths, log-probabilities."""

import numpy as np
import pytest

from cygnet.errors import ContextOverflow, DecodingError, OptionError
from cygnet.generation.batch import run_step
from cygnet.generation.options import GenerationOptions
from cygnet.generation.prefix_cache import PrefixCache
from cygnet.generation.sampling_task import SamplingTask
from cygnet.generation.tasks import Request

from .fakes import HashEngine, Letters, ScriptEngine, TableEngine


def generate(engine, prompt=(1,), *, decoder=None, source=None, budget=1000, **options):
    """Runs one request alone; returns its generations and deltas."""
    request = Request(list(prompt), GenerationOptions.create(None, **options), decoder=decoder, source_ids=source)
    request.check(engine)
    deltas = []
    task = SamplingTask(request, engine.max_context, emit=deltas.append)
    encoded = engine.encode([source])[0] if source else None
    task.begin(engine, PrefixCache(engine, enabled=False), encoded)
    while not task.finished:
        run_step(engine, [task], budget)
    task.close()
    if encoded:
        encoded.release()
    engine.assert_clean()
    return task.results(), deltas


def test_greedy_takes_the_largest_logit_and_the_first_of_equals():
    table = np.zeros((3, 5, 5), np.float32)
    table[0, 1, 3] = 1
    table[1, 3, [2, 4]] = 7
    [result], _ = generate(TableEngine(table), max_new_tokens=3)
    assert result.ids == [3, 2, 0]
    assert result.finish_reason == "length"
    assert result.usage == (1, 3, 0)


def test_prompt_chunks_do_not_change_the_ids():
    prompt = list(range(17))
    whole, _ = generate(HashEngine(), prompt, max_new_tokens=6)
    for budget in (1, 3, 16, 17):
        assert generate(HashEngine(), prompt, budget=budget, max_new_tokens=6)[0] == whole


WORDS = ["", "DEF", "G", "HI", "J", "go ", "stop!", "x", "a", "b"]


@pytest.mark.parametrize(
    ("script", "stop", "text", "found"),
    [
        ([1, 2, 3, 4, 7], "DEFGHIJ", "", "DEFGHIJ"),
        ([5, 6, 7, 7], "stop", "go ", "stop"),
        ([5, 6, 7, 7], ["x", "stop", "!"], "go ", "stop"),
        ([8, 9, 8, 9], ["q", "zz"], "abab", None),
    ],
)
def test_stop_strings_across_token_borders(script, stop, text, found):
    [result], deltas = generate(ScriptEngine(script), decoder=lambda: Letters(WORDS), stop=stop, max_new_tokens=len(script))
    assert result.text == text
    assert result.stop == found
    assert result.finish_reason == ("stop" if found else "length")
    assert "".join(delta.text for delta in deltas) == text
    assert [delta.finish_reason for delta in deltas][-1] == result.finish_reason


def test_every_end_id_stops_and_stays_out_of_the_text():
    strings = [chr(97 + i) for i in range(64)]
    for end in (2, 7):
        [result], _ = generate(ScriptEngine([9, end, 9]), decoder=lambda: Letters(strings), eos_token_id=[2, 7])
        assert (result.ids, result.text, result.finish_reason) == ([9, end], "j", "stop")
    [result], _ = generate(ScriptEngine([9, 11, 9]), decoder=lambda: Letters(strings), eos_token_id=2, stop_token_ids=[11])
    assert (result.ids, result.text, result.stop) == ([9, 11], "j", 11)
    [result], _ = generate(ScriptEngine([9, 2, 9]), eos_token_id=2, ignore_eos=True, max_new_tokens=3)
    assert result.ids == [9, 2, 9]


def test_stop_function_sees_ids_and_text():
    seen = []

    def stop_when(ids, text):
        seen.append((list(ids), text))
        return len(ids) == 2

    [result], _ = generate(ScriptEngine([8, 9, 8]), decoder=lambda: Letters(WORDS), stop_when=stop_when)
    assert result.finish_reason == "stop" and result.text == "ab"
    assert seen == [([8], "a"), ([8, 9], "ab")]


@pytest.mark.parametrize("prompt_length", [1, 50])
def test_minimum_length_bars_every_end_and_stop_id(prompt_length):
    options = {"logit_bias": {2: 100, 11: 50}, "min_new_tokens": 4, "max_new_tokens": 32, "eos_token_id": 2, "stop_token_ids": [11]}
    [result], _ = generate(HashEngine(), [3] * prompt_length, **options)
    assert len(result.ids) == 5 and result.ids[-1] == 2
    assert not {2, 11} & set(result.ids[:-1])
    assert result.finish_reason == "stop"


def test_minimum_length_without_end_ids_bars_nothing():
    plain, _ = generate(HashEngine(), max_new_tokens=8)
    assert generate(HashEngine(), max_new_tokens=8, min_new_tokens=5)[0] == plain


@pytest.mark.parametrize("count", [0, 1, 5])
def test_max_new_tokens(count):
    [result], _ = generate(HashEngine(), max_new_tokens=count)
    assert len(result.ids) == count and result.finish_reason == "length"


def test_max_length_counts_the_prompt_and_max_new_tokens_wins():
    assert len(generate(HashEngine(), [1, 2, 3], max_length=5)[0][0].ids) == 2
    assert len(generate(HashEngine(), [1, 2, 3], max_length=5, max_new_tokens=4)[0][0].ids) == 4
    with pytest.raises(OptionError, match="max_length=3 leaves no room after 3 prompt tokens"):
        generate(HashEngine(), [1, 2, 3], max_length=3)


def test_a_prompt_beyond_the_context_is_refused_with_both_numbers():
    with pytest.raises(ContextOverflow, match="100.*64"):
        generate(HashEngine(max_context=64), [1] * 100)
    [result], _ = generate(HashEngine(max_context=64), [1] * 60, max_new_tokens=10)
    assert len(result.ids) == 4 and result.finish_reason == "length"


def test_seeds():
    def ids(seed, **options):
        return [g.ids for g in generate(HashEngine(), temperature=1.0, seed=seed, max_new_tokens=12, **options)[0]]

    assert ids(7) == ids(7)
    assert ids(7) != ids(8)
    assert ids(7, n=3)[:2] == ids(7, n=2)
    assert ids(7, n=3)[0] == ids(7)[0]
    for seed in (0, 2**32 - 1, 2**63, 2**64 - 1):
        assert ids(seed) == ids(seed)
    with pytest.raises(OptionError, match="seed"):
        ids(2**64)
    [result], _ = generate(HashEngine(), temperature=1.0, max_new_tokens=12)
    assert ids(result.seed) == [result.ids]
    assert len({tuple(ids(None)[0]) for _ in range(5)}) > 1


def test_samples_of_one_prompt_share_its_memory():
    engine = HashEngine(block_tokens=4)
    request = Request(list(range(32)), GenerationOptions(temperature=1.0, seed=1, num_return_sequences=5, max_new_tokens=4))
    task = SamplingTask(request, None)
    task.begin(engine, PrefixCache(engine, enabled=False), None)
    for _ in range(3):
        run_step(engine, [task], 100)
    assert engine.batches[0] == [32]
    assert engine.blocks_total - engine.blocks_free == 8 + 5
    task.close()
    engine.assert_clean()


def test_logprobs_are_those_of_the_raw_logits():
    engine = HashEngine()
    options = {"logprobs": 5, "temperature": 0.7, "top_k": 3, "repetition_penalty": 1.5, "logit_bias": {4: 2.0}, "seed": 3, "max_new_tokens": 6}
    [result], deltas = generate(engine, [5], **options)
    assert len(result.logprobs) == len(result.ids) == 6
    prefix = [5]
    for token, entry, delta in zip(result.ids, result.logprobs, deltas, strict=True):
        row = engine.logits(prefix, None).astype(np.float64)
        expected = row - np.log(np.exp(row).sum())
        assert entry == delta.logprob
        assert entry.id == token and entry.logprob == pytest.approx(expected[token], abs=1e-5)
        order = np.argsort(-expected, kind="stable")[:5]
        assert [i for i, _ in entry.top] == order.tolist()
        assert [value for _, value in entry.top] == pytest.approx(expected[order], abs=1e-5)
        assert dict(entry.top).get(token, entry.logprob) == entry.logprob
        prefix.append(token)
    assert generate(engine, [5], logprobs=0, max_new_tokens=2)[0][0].logprobs[0].top == ()


def test_logit_bias_with_string_keys():
    for key in ("5", 5):
        [result], _ = generate(HashEngine(), logit_bias={key: 100}, max_new_tokens=3)
        assert result.ids == [5, 5, 5]
        [result], _ = generate(HashEngine(), logit_bias={key: -100}, temperature=1.5, seed=1, max_new_tokens=200)
        assert 5 not in result.ids
    with pytest.raises(OptionError, match="40 tokens"):
        generate(HashEngine(), logit_bias={"40": 1})


def test_prefix_and_forced_tokens():
    free, _ = generate(HashEngine(), [1, 9, 8], max_new_tokens=3)
    [result], deltas = generate(HashEngine(), [1], decoder=lambda: Letters([chr(48 + i) for i in range(40)]), prefix_ids=[9, 8], max_new_tokens=3)
    assert result.ids == [9, 8, *free[0].ids] and result.usage.completion_tokens == 3
    assert result.text == "".join(delta.text for delta in deltas) and result.text.startswith("98")
    [result], _ = generate(HashEngine(), [1], forced_bos=7, forced_eos=2, eos_token_id=2, max_new_tokens=4)
    assert result.ids[0] == 7 and result.ids[-1] == 2 and len(result.ids) == 4


def test_allowed_tokens_function():
    seen = []

    def allowed(ids):
        seen.append(list(ids))
        return [3, 4]

    [result], _ = generate(HashEngine(), [1], allowed_tokens=allowed, max_new_tokens=4)
    assert set(result.ids) <= {3, 4}
    assert seen == [[1, *result.ids[:i]] for i in range(4)]
    for bad in ([], [99], [-1], ["a"], [1.5], None, 3):
        with pytest.raises(OptionError, match="allowed_tokens"):
            generate(HashEngine(), allowed_tokens=lambda ids, bad=bad: bad)


def test_encoder_decoder_counts_source_tokens_as_prompt():
    [result], _ = generate(HashEngine(), [0], source=[4, 5, 6, 7], max_new_tokens=3)
    assert result.usage == (4, 3, 0)
    assert result.ids != generate(HashEngine(), [0], source=[4, 5, 6, 8], max_new_tokens=3)[0][0].ids


def test_nothing_to_choose_from_is_an_error():
    table = np.full((1, 4, 4), -np.inf, np.float32)
    for value in (-np.inf, np.nan):
        table[:] = value
        with pytest.raises(DecodingError, match="no token can follow"):
            generate(TableEngine(table))


def test_bad_requests():
    with pytest.raises(OptionError, match="empty"):
        generate(HashEngine(), [])
    for prompt in ([40], [-1]):
        with pytest.raises(OptionError, match="outside the vocabulary"):
            generate(HashEngine(), prompt)
