"""Many requests at once: equal tokens, fair order, bounded memory, cancelling, errors, threads, asyncio, fork."""

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from cygnet.errors import CacheFull, Cancelled, ModelClosed, OptionError, OutOfMemory
from cygnet.generation import scheduler as scheduler_module
from cygnet.generation.options import GenerationOptions
from cygnet.generation.scheduler import Scheduler
from cygnet.generation.tasks import Request

from .fakes import HashEngine, Letters


def request(prompt, decoder=None, source=None, **options):
    return Request(list(prompt), GenerationOptions.create(None, **options), decoder, source)


@pytest.fixture
def run_in(request):
    """Makes a scheduler over a fake engine; afterwards nothing may be held."""
    made = []

    def make(engine=None, **kwargs):
        made.append((Scheduler(engine or HashEngine(), **kwargs), engine))
        return made[-1][0]

    yield make
    for scheduler, _ in made:
        scheduler.close()
        scheduler.engine.assert_clean()


MIXED = [
    {"max_new_tokens": 9},
    {"temperature": 0.8, "seed": 3, "max_new_tokens": 7, "logprobs": 2},
    {"temperature": 1.2, "top_k": 5, "seed": 4, "n": 3, "max_new_tokens": 5},
    {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 6, "eos_token_id": [1, 2]},
    {"repetition_penalty": 1.4, "no_repeat_ngram_size": 2, "max_new_tokens": 8, "eos_token_id": 5},
    {"speculation": "prompt-lookup", "max_new_tokens": 12},
]


def test_every_request_gets_what_it_would_get_alone(run_in):
    requests = [request([7 * j % 37 for j in range(1, 2 + 5 * i)], **options) for i, options in enumerate(MIXED * 3)]
    requests += [request([0], source=[7, 8, i], max_new_tokens=4) for i in range(5)]
    alone = [run_in(reuse_prefixes=False).submit(r).result() for r in requests]
    assert run_in(reuse_prefixes=False, chunk_tokens=3).run(requests) == alone
    for together in (run_in(chunk_tokens=5), run_in(HashEngine(block_tokens=2, blocks=120), chunk_tokens=7, prompt_tokens=9)):
        for found, wanted in zip(together.run(requests), alone, strict=True):
            assert [(g.ids, g.score, g.logprobs, g.finish_reason) for g in found] == [(g.ids, g.score, g.logprobs, g.finish_reason) for g in wanted]


def test_running_requests_wait_for_no_more_than_a_chunk(run_in):
    engine = HashEngine()
    scheduler = run_in(engine, chunk_tokens=16, prompt_tokens=64, reuse_prefixes=False)
    started, joined = threading.Event(), threading.Event()

    def third_waits(batch):
        if len(engine.batches) == 3:
            started.set()
            joined.wait(5)

    engine.before_forward = third_waits
    short = scheduler.submit(request([1], max_new_tokens=60))
    started.wait(5)
    long = scheduler.submit(request([2] * 100, max_new_tokens=2))
    joined.set()
    long.result(), short.result()
    beside = [batch for batch in engine.batches if len(batch) == 2 and batch[1] > 1]
    assert beside and all(batch[0] == 1 and batch[1] <= 16 for batch in beside)


def test_first_come_first_served(run_in):
    engine = HashEngine(blocks=10, block_tokens=4)
    scheduler = run_in(engine, reuse_prefixes=False)
    order = []
    handles = [scheduler.submit(request([1] * 20, max_new_tokens=8, stop_when=lambda ids, text, i=i: order.append(i) or False)) for i in range(3)]
    for handle in handles:
        handle.result()
    assert order == [0] * 8 + [1] * 8 + [2] * 8


def test_a_request_that_can_never_fit_is_refused_and_others_go_on(run_in):
    scheduler = run_in(HashEngine(blocks=5, block_tokens=4))
    fits = request([1, 2], max_new_tokens=10)
    with pytest.raises(CacheFull, match="5 are free"):
        scheduler.submit(request([1] * 40, max_new_tokens=10)).result()
    assert len(scheduler.submit(fits).result()[0].ids) == 10


@pytest.mark.parametrize("options", [{"num_return_sequences": 10**9, "temperature": 1.0}, {"num_beams": 10**9, "num_beam_groups": 10**9}])
def test_more_continuations_than_memory_are_refused_before_any_is_made(run_in, options):
    scheduler = run_in(HashEngine(blocks=50, block_tokens=4))
    with pytest.raises(CacheFull, match="50 are free.*fewer samples or beams"):
        scheduler.submit(request([1, 2], max_new_tokens=10, **options))


def test_what_just_fits_the_memory_is_not_refused(run_in):
    # The prompt's blocks take the first answer too; each further one has three for its own tokens and one that it may copy.
    scheduler = run_in(HashEngine(blocks=4 + 2 * 4, block_tokens=4))
    assert len(scheduler.submit(request([1, 2, 3, 4], max_new_tokens=10, num_return_sequences=3, temperature=1.0)).result()) == 3


def test_waiting_requests_make_cached_prefixes_leave(run_in):
    engine = HashEngine(blocks=12, block_tokens=4)
    scheduler = run_in(engine)
    for i in range(6):
        assert scheduler.submit(request([i] * 20, max_new_tokens=8)).result()[0].finish_reason == "length"
    assert engine.blocks_free < 12


def test_memory_taken_beside_the_scheduler_makes_cached_prefixes_leave(run_in):
    engine = HashEngine(blocks=20, block_tokens=4)
    scheduler = run_in(engine)
    scheduler.submit(request([5] * 30, max_new_tokens=4)).result()
    hog = engine.sequence()

    def take_all(ids, text):
        if len(ids) == 1:
            engine.forward([(hog, [1] * 4 * engine.blocks_free)], rows="none")
        return False

    assert len(scheduler.submit(request([6], max_new_tokens=20, stop_when=take_all)).result(30)[0].ids) == 20
    hog.release()


def test_streams_join_to_the_text(run_in):
    strings = [chr(97 + i % 26) for i in range(40)]
    scheduler = run_in()
    wanted = scheduler.submit(request([3], lambda: Letters(strings), max_new_tokens=20)).result()[0]
    deltas = list(scheduler.submit(request([3], lambda: Letters(strings), max_new_tokens=20)))
    assert "".join(delta.text for delta in deltas) == wanted.text
    assert [delta.id for delta in deltas] == wanted.ids
    assert [delta.finish_reason for delta in deltas] == [None] * 19 + ["length"]


def slow(engine, seconds=0.01):
    engine.before_forward = lambda batch: time.sleep(seconds)
    return engine


def test_cancelling_keeps_what_is_there_and_frees_the_rest(run_in):
    engine = slow(HashEngine())
    scheduler = run_in(engine, reuse_prefixes=False)
    handle, other = (scheduler.submit(request([i], max_new_tokens=count)) for i, count in ((1, 5000), (2, 20)))
    stream = iter(handle)
    first = [next(stream).id for _ in range(3)]
    handle.cancel()
    [result] = handle.result(30)
    assert result.finish_reason == "cancelled" and result.ids[:3] == first
    assert other.result(30)[0].finish_reason == "length"


@pytest.mark.parametrize("options", [{"n": 2, "temperature": 1.0}, {"num_beams": 2}, {}])
def test_cancelling_while_it_waits_or_reads_or_runs(run_in, options):
    engine = slow(HashEngine(blocks=60), 0.005)
    scheduler = run_in(engine, chunk_tokens=2, prompt_tokens=2, reuse_prefixes=False)
    handles = [scheduler.submit(request([1] * 30, max_new_tokens=40, **options)) for _ in range(4)]
    for delay, handle in zip((0.02, 0.08, 0.02, 0), handles, strict=True):
        time.sleep(delay)
        handle.cancel()
        assert handle.result(30)[0].finish_reason == "cancelled"


def test_dropped_and_closed_streams_stop_the_work(run_in):
    scheduler = run_in(slow(HashEngine()), reuse_prefixes=False)
    stream = iter(scheduler.submit(request([1], max_new_tokens=5000)))
    next(stream)
    stream.close()
    scheduler.submit(request([1], max_new_tokens=5000))
    gc.collect()
    end = time.monotonic() + 30
    while scheduler._running or scheduler._waiting:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_cancel_stops_the_forward_pass_that_nobody_else_wants(run_in):
    engine = HashEngine()
    inside = threading.Event()

    def long_forward(batch):
        inside.set()
        engine.stopped.wait(5)

    engine.before_forward = long_forward
    scheduler = run_in(engine)
    handle = scheduler.submit(request([1] * 50))
    inside.wait(5)
    start = time.monotonic()
    handle.cancel()
    assert handle.result(30)[0].finish_reason == "cancelled"
    assert time.monotonic() - start < 4
    engine.before_forward = None
    assert len(scheduler.submit(request([1], max_new_tokens=3)).result(30)[0].ids) == 3


def test_a_stray_cancel_does_not_end_requests(run_in):
    engine = HashEngine()
    scheduler = run_in(engine)
    engine.cancel()
    assert len(scheduler.submit(request([1], max_new_tokens=3)).result(30)[0].ids) == 3


def test_errors_of_one_request_do_not_hurt_others(run_in):
    engine = HashEngine()

    def fails(ids, text):
        raise ZeroDivisionError("in the stop function")

    def poisoned(batch):
        if any(13 in ids for _, ids in batch):
            raise RuntimeError("in the forward pass")

    engine.before_forward = poisoned
    scheduler = run_in(engine, reuse_prefixes=False)
    good = [scheduler.submit(request([i], max_new_tokens=10, suppress_tokens=[13])) for i in range(3)]
    bad = scheduler.submit(request([1], stop_when=fails))
    worse = scheduler.submit(request([13]))
    late = scheduler.submit(request([5], logit_bias={13: 100}))
    with pytest.raises(ZeroDivisionError):
        bad.result(30)
    for handle in (worse, late):
        with pytest.raises(RuntimeError, match="forward pass"):
            handle.result(30)
    assert [len(handle.result(30)[0].ids) for handle in good] == [10] * 3
    with pytest.raises(OptionError):
        scheduler.submit(request([99]))


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("option", ["stop_when", "allowed_tokens"])
def test_what_a_callback_raises_reaches_its_caller_alone(run_in, option, error):
    def leaves(*args):
        raise error(3)

    scheduler = run_in()
    other = scheduler.submit(request([2], max_new_tokens=30))
    with pytest.raises(error):
        scheduler.submit(request([1], **{option: leaves})).result(30)
    assert len(other.result(30)[0].ids) == 30
    assert len(scheduler.submit(request([1], max_new_tokens=4)).result(30)[0].ids) == 4


def test_memory_that_a_request_does_not_get_is_one_kind_of_error(run_in):
    engine = HashEngine()

    def none_left(batch):
        if any(13 in ids for _, ids in batch):
            raise OutOfMemory("no memory is left")

    engine.before_forward = none_left
    scheduler = run_in(engine, reuse_prefixes=False)

    def bare(ids, text):
        raise MemoryError

    good = scheduler.submit(request([1], max_new_tokens=5, suppress_tokens=[13]))
    for bad in (request([13]), request([1], stop_when=bare)):
        with pytest.raises(OutOfMemory):
            scheduler.submit(bad).result(30)
    assert len(good.result(30)[0].ids) == 5


def test_encoder_errors_do_not_hurt_others(run_in):
    class Picky(HashEngine):
        def encode(self, sources):
            if any(13 in ids for ids in sources):
                raise RuntimeError("in the encoder")
            return super().encode(sources)

    scheduler = run_in(Picky())
    handles = [scheduler.submit(request([0], source=[i, 13 if i == 1 else 2], max_new_tokens=2)) for i in range(3)]
    with pytest.raises(RuntimeError):
        handles[1].result(30)
    assert len(handles[0].result(30)[0].ids) == len(handles[2].result(30)[0].ids) == 2


def test_sources_wait_for_memory_in_order(run_in):
    class Small(HashEngine):
        """Holds ten source tokens at a time."""

        def encode(self, sources):
            if sum(map(len, sources)) + sum(len(source.ids) for source in self.sources) > 10:
                raise CacheFull("no room for the source")
            return super().encode(sources)

    scheduler = run_in(Small())
    lengths = [4, 4, 9, 2, 10, 11, 1]
    handles = [scheduler.submit(request([0], source=[i] * n, max_new_tokens=3)) for i, n in enumerate(lengths)]
    for handle, length in zip(handles, lengths, strict=True):
        if length > 10:
            with pytest.raises(CacheFull):
                handle.result(30)
        else:
            assert len(handle.result(30)[0].ids) == 3


def test_many_threads(run_in):
    scheduler = run_in(HashEngine(blocks=300))
    wanted = {i: scheduler.submit(request([i], max_new_tokens=8)).result() for i in range(8)}
    wrong = []

    def work(i):
        for _ in range(5):
            if scheduler.submit(request([i], max_new_tokens=8)).result(20)[0].ids != wanted[i][0].ids:
                wrong.append(i)
            next(iter(scheduler.submit(request([i + 8], max_new_tokens=30))))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert not wrong


def test_asyncio(run_in):
    engine = slow(HashEngine(), 0.002)
    scheduler = run_in(engine)
    wanted = [scheduler.submit(request([i], max_new_tokens=10)).result()[0].ids for i in range(4)]

    async def stream(i):
        return [delta.id async for delta in scheduler.submit(request([i], max_new_tokens=10))]

    async def leave():
        async for _ in scheduler.submit(request([9], max_new_tokens=5000)):
            break

    async def main():
        streams = await asyncio.gather(*map(stream, range(4)), leave())
        results = await asyncio.gather(*(scheduler.submit(request([i], max_new_tokens=10)).aresult() for i in range(4)))
        stuck = asyncio.ensure_future(scheduler.submit(request([9], max_new_tokens=5000)).aresult())
        await asyncio.sleep(0.02)
        stuck.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stuck
        return streams[:4], [generations[0].ids for generations in results]

    assert asyncio.run(main()) == (wanted, wanted)


def test_a_loop_that_closes_under_its_stream_hurts_nobody(run_in):
    scheduler = run_in(slow(HashEngine(), 0.005))
    loop = asyncio.new_event_loop()
    handle = scheduler.submit(request([9], max_new_tokens=5000))
    stream = handle.__aiter__()
    loop.run_until_complete(stream.__anext__())
    loop.close()
    assert handle.result(30)[0].finish_reason == "cancelled"
    assert len(scheduler.submit(request([1], max_new_tokens=3)).result(30)[0].ids) == 3


def test_a_stop_function_that_calls_its_own_model_is_an_error(run_in):
    scheduler = run_in()
    handle = scheduler.submit(request([1], stop_when=lambda ids, text: scheduler.submit(request([2])).result()))
    with pytest.raises(OptionError, match="wait for itself"):
        handle.result(30)


def test_the_thread_ends_when_idle_and_comes_back(run_in, monkeypatch):
    monkeypatch.setattr(scheduler_module, "IDLE_SECONDS", 0.01)
    scheduler = run_in()
    for _ in range(2):
        scheduler.submit(request([1], max_new_tokens=2)).result(30)
        end = time.monotonic() + 30
        while scheduler._thread is not None:
            assert time.monotonic() < end
            time.sleep(0.005)


def test_closing(run_in):
    engine = slow(HashEngine())
    scheduler = run_in(engine)
    handle = scheduler.submit(request([1], max_new_tokens=5000))
    next(iter(handle))
    scheduler.close()
    assert handle.result(30)[0].finish_reason == "cancelled"
    with pytest.raises(ModelClosed, match="closed"):
        scheduler.submit(request([1]))


def test_closing_is_no_end_of_answers_that_others_wait_for(run_in):
    scheduler = run_in(slow(HashEngine()))
    whole, stream, waiting = (scheduler.submit(request([i], max_new_tokens=5000)) for i in range(3))
    pieces = iter(stream)
    next(pieces)
    scheduler.close()
    for outcome in (whole.result, lambda timeout: list(pieces), waiting.result):
        with pytest.raises(Cancelled, match="closed"):
            outcome(30)


def test_a_timeout_leaves_the_request_running(run_in):
    handle = run_in(slow(HashEngine())).submit(request([1], max_new_tokens=20))
    with pytest.raises(TimeoutError):
        handle.result(0.02)
    assert len(handle.result(30)[0].ids) == 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_works(run_in):
    scheduler = run_in(slow(HashEngine(), 0.005))
    handle = scheduler.submit(request([1], max_new_tokens=50))
    next(iter_ := iter(handle))
    child = os.fork()
    if child == 0:
        try:
            try:
                handle.result(2)
            except Cancelled:
                os._exit(0 if len(scheduler.submit(request([1], max_new_tokens=5)).result(30)[0].ids) == 5 else 2)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(handle.result(30)[0].ids) == 50
    iter_.close()


def test_interpreter_exit_in_mid_generation():
    code = """
        from tests.generation.fakes import HashEngine
        from cygnet.generation.options import GenerationOptions
        from cygnet.generation.scheduler import Scheduler
        from cygnet.generation.tasks import Request

        stream = iter(Scheduler(HashEngine()).submit(Request([1], GenerationOptions(max_new_tokens=30000))))
        next(stream)
    """
    paths = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, timeout=20, check=False)
    assert (found.returncode, found.stderr) == (0, b"")
