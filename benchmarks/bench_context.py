"""Tokens a second of decoding after 0 to 8000 tokens, beside llama.cpp on the same file, as a table and a PNG.

Rounds are taken in turns, engine by engine; medians are shown. Needs llama-cpp-python and matplotlib.

    python benchmarks/bench_context.py smollm2-Q4_0.gguf --threads 2 --png docs/images/decode-by-context.png
"""

import argparse
import statistics
import time

import numpy as np

from cygnet.architectures.registry import load_spec
from cygnet.cpu_count import thread_count
from cygnet.engine import Engine
from cygnet.hub import resolve


class Cygnet:
    def __init__(self, path, threads, cache_dtype):
        loaded = load_spec(resolve(path))
        self.engine = Engine(loaded.spec, loaded.weights, threads=threads, cache_dtype=cache_dtype)
        self.vocab_size = self.engine.vocab_size

    def read(self, ids):
        self.sequence, self.length = self.engine.sequence(), len(ids)
        self.engine.forward([(self.sequence, ids)], rows="none")

    def decode(self, tokens):
        for token in tokens:
            self.engine.forward([(self.sequence, [token])])
        self.sequence.truncate(self.length)

    def forget(self):
        self.sequence.release()


class LlamaCpp:
    def __init__(self, path, threads, context):
        from llama_cpp import Llama

        self.model = Llama(path, n_ctx=context, n_threads=threads, n_threads_batch=threads, verbose=False)
        self.vocab_size = self.model.n_vocab()

    def read(self, ids):
        self.model.reset()
        self.length = len(ids)
        self.model.eval(ids)

    def decode(self, tokens):
        for token in tokens:
            self.model.eval([token])
        self.model.n_tokens = self.length

    def forget(self):
        self.model.reset()


def rates(engines, length, tokens, rounds):
    """Tokens a second of each engine in each round, after `length` tokens and one to start from."""
    generator = np.random.default_rng(length)
    size = min(engine.vocab_size for engine in engines.values())
    ids, new = (generator.integers(0, size, n).tolist() for n in (length + 1, tokens))
    found = {name: [] for name in engines}
    for engine in engines.values():
        engine.read(ids)
        engine.decode(new[:2])
    for _ in range(rounds):
        for name, engine in engines.items():
            start = time.perf_counter()
            engine.decode(new)
            found[name].append(tokens / (time.perf_counter() - start))
    for engine in engines.values():
        engine.forget()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--contexts", type=int, nargs="*", default=[0, 1000, 4000, 8000])
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--png")
    arguments = parser.parse_args()
    threads = thread_count(arguments.threads)
    engines = {f"cygnet, {kind} keys and values": Cygnet(arguments.model, threads, kind) for kind in ("float16", "float32")}
    engines["llama.cpp"] = LlamaCpp(arguments.model, threads, max(arguments.contexts) + 4 * arguments.tokens)
    series = {name: [] for name in engines}
    print(f"{'tokens before':<34}" + "".join(f"{length:>24}" for length in arguments.contexts))
    for length in arguments.contexts:
        for name, found in rates(engines, length, arguments.tokens, arguments.rounds).items():
            series[name].append((length, statistics.median(found), min(found), max(found)))
    for name, points in series.items():
        print(f"{name:<34}" + "".join(f"{middle:>9.1f} ({least:.1f}-{most:.1f})".rjust(24) for _, middle, least, most in points))
    if arguments.png:
        from plots import Point, draw

        panel = f"decoding, {threads} threads"
        draw(arguments.png, [Point(panel, name, point[0], point[1], None) for name, points in series.items() for point in points], "tokens before")


if __name__ == "__main__":
    main()
