"""What decoding gains: requests together over one after another, waits beside long prompts, repeated prefixes, prompt lookup; with peak memory.

Prompts are random ids, so that no tokenizer is needed; only the copying task reads text that repeats itself. Every ratio compares equal tokens.

    python benchmarks/bench_generation.py SmolLM2-135M-Instruct.Q4_1.gguf --threads 2
"""

import argparse
import resource
import threading
import time

import numpy as np

from cygnet.architectures.registry import load_spec
from cygnet.engine import Engine
from cygnet.generation.options import GenerationOptions
from cygnet.generation.scheduler import Scheduler
from cygnet.generation.tasks import Request
from cygnet.hub import resolve


def timed(work):
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def prompts(generator, vocab, count, shortest, longest):
    return [generator.integers(0, vocab, generator.integers(shortest, longest + 1)).tolist() for _ in range(count)]


def ids_of(results):
    return [generation.ids for own in results for generation in own]


def together(engine, shortest, longest, count, tokens):
    """Requests one after another and all at once."""
    options = GenerationOptions(max_new_tokens=tokens)
    requests = [Request(ids, options) for ids in prompts(np.random.default_rng(0), engine.vocab_size, count, shortest, longest)]
    scheduler = Scheduler(engine, reuse_prefixes=False)
    scheduler.run(requests[:2])
    alone, wanted = timed(lambda: [scheduler.submit(request).result() for request in requests])
    batch, found = timed(lambda: scheduler.run(requests))
    assert ids_of(found) == ids_of(wanted)
    scheduler.close()
    made = count * tokens
    print(f"{count} requests, prompts {shortest}-{longest}: {made / alone:7.1f} tok/s alone  {made / batch:7.1f} together  {alone / batch:5.2f}x")


def longest_wait(engine, streams, longest):
    """The longest time between two tokens of any stream while prompts of `longest` tokens arrive, in chunks alone at the end of such a prompt.

    In each of five rounds the longest wait stands beside the longest of as many chunks alone as the prompts have, because the longest of ten
    times is more than one time on any machine; the ratio is that of the medians.
    """
    generator = np.random.default_rng(1)
    scheduler = Scheduler(engine, reuse_prefixes=False)
    chunk, long = (prompts(generator, engine.vocab_size, 1, n, n)[0] for n in (128, longest))
    waits, chunks = [], []
    for _ in range(5):
        chunks.append(longest_chunk(engine, long, chunk, 2 * longest // len(chunk)))
        ready, over = threading.Barrier(streams + 1), threading.Event()
        gaps = [0.0] * streams

        def listen(number, gaps=gaps, ready=ready, over=over):
            handle = scheduler.submit(Request(chunk[:5], GenerationOptions(max_new_tokens=2000)))
            stream = iter(handle)
            next(stream)
            ready.wait()
            before = time.perf_counter()
            for _ in stream:
                now = time.perf_counter()
                gaps[number], before = max(gaps[number], now - before), now
                if over.is_set():
                    handle.cancel()

        listeners = [threading.Thread(target=listen, args=(number,)) for number in range(streams)]
        for listener in listeners:
            listener.start()
        ready.wait()
        scheduler.run([Request(ids, GenerationOptions(max_new_tokens=2)) for ids in prompts(generator, engine.vocab_size, 2, longest, longest)])
        over.set()
        for listener in listeners:
            listener.join()
        waits.append(max(gaps))
    scheduler.close()
    wait, unit = np.median(waits), np.median(chunks)
    print(
        f"longest wait of {streams} streams beside {longest}-token prompts: {wait * 1e3:.0f} ms, {wait / unit:.2f} of the longest of "
        f"{2 * longest // len(chunk)} chunks of {len(chunk)} alone ({unit * 1e3:.0f} ms)"
    )


def longest_chunk(engine, prompt, chunk, times):
    """The longest time that a chunk at the end of a prompt takes by itself."""
    sequence = engine.sequence()
    engine.forward([(sequence, prompt[: -len(chunk)])], rows="none")
    found = []
    for _ in range(times):
        found.append(timed(lambda: engine.forward([(sequence, chunk)], rows="none"))[0])
        sequence.truncate(len(prompt) - len(chunk))
    sequence.release()
    return max(found)


def repeated_prefix(engine):
    prompt = prompts(np.random.default_rng(2), engine.vocab_size, 1, 1000, 1000)[0]
    request = Request(prompt, GenerationOptions(max_new_tokens=1))
    scheduler = Scheduler(engine)
    scheduler.run([Request(prompt[:4], request.options)])
    (first, cold), (second, warm) = (timed(lambda: scheduler.run([request])) for _ in range(2))
    assert ids_of(cold) == ids_of(warm)
    scheduler.close()
    print(f"first token after 1000: {first * 1e3:.0f} ms cold  {second * 1e3:.1f} ms repeated  {first / second:.1f}x")


def copying(engine, tokens):
    """A prompt that repeats itself, so that a model which copies is guessed well."""
    text = prompts(np.random.default_rng(3), engine.vocab_size, 1, 60, 60)[0] * 6
    scheduler = Scheduler(engine, reuse_prefixes=False)
    found = {}
    for kind in (None, "prompt-lookup"):
        request = Request(text, GenerationOptions(max_new_tokens=tokens, speculation=kind))
        found[kind] = timed(lambda request=request: scheduler.run([request]))
    scheduler.close()
    (plain, wanted), (fast, got) = found.values()
    assert ids_of(wanted) == ids_of(got)
    print(f"copying {tokens} tokens: {plain * 1e3:.0f} ms plain  {fast * 1e3:.0f} ms prompt lookup  {plain / fast:.2f}x")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--weights", default="auto")
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    arguments = parser.parse_args()
    loaded = load_spec(resolve(arguments.model))
    engine = Engine(loaded.spec, loaded.weights, weights=arguments.weights, threads=arguments.threads)
    together(engine, 5, 20, arguments.requests, arguments.tokens)
    together(engine, 20, 400, arguments.requests, arguments.tokens)
    for streams, longest in ((1, 600), (16, 600), (8, 2000)):
        longest_wait(engine, streams, longest)
    repeated_prefix(engine)
    copying(engine, 4 * arguments.tokens)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
