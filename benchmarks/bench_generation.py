"""What decoding gains: requests together over one after another, repeated prefixes, prompt lookup, tokens/s by context; with peak memory.

Prompts are random ids, so that no tokenizer is needed; only the copying task reads text that repeats itself. Every ratio compares equal tokens.

    python benchmarks/bench_generation.py SmolLM2-135M-Instruct.Q4_1.gguf --threads 2
"""

import argparse
import resource
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
    """Requests one after another and all at once; also the longest wait between two tokens of a stream, beside a chunk's time."""
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


def longest_wait(engine, tokens):
    """The longest time between two tokens of a stream while long prompts arrive, in units of one chunk's forward pass."""
    generator = np.random.default_rng(1)
    scheduler = Scheduler(engine, reuse_prefixes=False)
    chunk = prompts(generator, engine.vocab_size, 1, 128, 128)[0]
    sequence = engine.sequence()
    engine.forward([(sequence, chunk)], rows="none")
    unit, _ = timed(lambda: engine.forward([(sequence, chunk)], rows="none"))
    sequence.release()
    stream = iter(scheduler.submit(Request(chunk[:5], GenerationOptions(max_new_tokens=tokens))))
    next(stream)
    others = [scheduler.submit(Request(ids, GenerationOptions(max_new_tokens=2))) for ids in prompts(generator, engine.vocab_size, 4, 600, 600)]
    times = [time.perf_counter()] + [time.perf_counter() for _ in stream]
    for other in others:
        other.result()
    scheduler.close()
    print(f"longest wait beside 600-token prompts: {max(np.diff(times)) / unit:.2f} chunks of 128")


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


def by_context(engine, lengths, tokens):
    rates = []
    for length in lengths:
        if engine.max_context is not None and length + tokens + 1 > engine.max_context:
            continue
        sequence = engine.sequence()
        ids = prompts(np.random.default_rng(4), engine.vocab_size, 1, length + 1, length + 1)[0]
        engine.forward([(sequence, ids)], rows="none")
        seconds, _ = timed(lambda sequence=sequence: [engine.forward([(sequence, [5])]) for _ in range(tokens)])
        sequence.release()
        rates.append(f"{length}: {tokens / seconds:.1f}")
    print("tokens/s by context  " + "  ".join(rates))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--weights", default="auto")
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--contexts", type=int, nargs="*", default=[0, 1000, 4000, 8000])
    arguments = parser.parse_args()
    loaded = load_spec(resolve(arguments.model))
    engine = Engine(loaded.spec, loaded.weights, weights=arguments.weights, threads=arguments.threads)
    together(engine, 5, 20, arguments.requests, arguments.tokens)
    together(engine, 20, 400, arguments.requests, arguments.tokens)
    longest_wait(engine, arguments.tokens)
    repeated_prefix(engine)
    copying(engine, 4 * arguments.tokens)
    by_context(engine, arguments.contexts, 16)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
