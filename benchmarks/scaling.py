"""How tokens/s follow threads, context, batch and model size, beside what the machine's limits allow: a table, JSON, and one PNG each.

    python benchmarks/scaling.py --home HOME -o docs/images [--peers PEERS/bench.py]

HOME is the folder of models of the comparison (benchmarks/compare); with --peers, the comparison harness, llama.cpp is measured beside the context.
Decode can be no faster than its weights, keys and values are read from memory; prefill, and decode of many sequences, no faster than what the
instruction set multiplies (limits.c). What was measured before is kept in scaling.json of the output folder, so that --only repeats a part.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
from machine_limits import limits
from made_up import TINY_LLAMA, write_random_llama
from plots import Point, draw

from cygnet._core._kernels import isa_name
from cygnet.architectures.registry import load_spec
from cygnet.cpu_count import thread_count
from cygnet.engine import Engine

PREFILL, PROMPT, NEW, ROUNDS = 512, 32, 32, 3
CONTEXTS = (0, 1000, 4000, 8000)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
AXES = {"threads": "threads", "context": "tokens of context", "batch": "sequences", "size": "millions of parameters"}


class Model:
    """An engine, and what one of its tokens costs.

    Attributes
    ----------
    parameters : int
        Elements of the weight matrices, a tied one counted once.
    weight_bytes : int
        Read for one decoded token: everything but an embedding table that is no head.
    token_bytes : float
        Keys and values of one token.
    operations, head_operations : int
        Of one token, a multiply-add counted as two: through the layers, and through the head.
    """

    def __init__(self, path, weights="auto", threads=None):
        loaded = load_spec(path)
        self.engine = Engine(loaded.spec, loaded.weights, weights=weights, threads=threads)
        sizes = {name: int(np.prod(view.shape)) for name, view in loaded.weights.items() if len(view.shape) == 2}
        table = sizes["decoder.embed.token.weight"]
        tied = loaded.spec.head.steps[0].tied
        self.parameters = sum(sizes.values())
        self.head_operations = 2 * table
        self.operations = 2 * (self.parameters - sum(n for name, n in sizes.items() if ".embed." in name) - (0 if tied else table))
        self.weight_bytes = self.engine.weight_bytes
        if not tied:
            self.weight_bytes -= loaded.weights["decoder.embed.token.weight"].tensor.nbytes
        self.token_bytes = self.engine._pool.block_bytes / self.engine.block_tokens

    def ids(self, count, seed=0):
        return np.random.default_rng(seed).integers(5, self.engine.vocab_size, count).tolist()

    def prefill(self):
        """Tokens/s of a fresh prompt."""

        def run():
            sequence = self.engine.sequence()
            took = seconds(lambda: self.engine.forward([(sequence, self.ids(PREFILL))]))
            sequence.release()
            return took

        return PREFILL / repeated(run)

    def decode(self, sequences):
        """Tokens/s of single steps of these sequences together; they are left as they were."""

        def run():
            lengths = [sequence.length for sequence in sequences]
            took = seconds(lambda: [self.engine.forward([(sequence, [5]) for sequence in sequences]) for _ in range(NEW)])
            for sequence, length in zip(sequences, lengths, strict=True):
                sequence.truncate(length)
            return took

        return NEW * len(sequences) / repeated(run)

    def started(self, count=1):
        """Sequences with a short prompt each."""
        sequences = [self.engine.sequence() for _ in range(count)]
        for seed, sequence in enumerate(sequences):
            self.engine.forward([(sequence, self.ids(PROMPT, seed))], rows="none")
        return sequences


class Machine:
    """The limits of so many threads together, for integer weights: bytes and operations a second."""

    @classmethod
    @cache
    def of(cls, threads):
        return cls(limits(threads))

    def __init__(self, found):
        self.memory, self.arithmetic = 1e9 * found["memory"], 1e9 * found[f"int_{isa_name()}"]

    def decode(self, model, context=PROMPT, batch=1):
        """Tokens/s: weights are read once a step, keys and values of every sequence; all are multiplied for every sequence."""
        reading = (model.weight_bytes + batch * context * model.token_bytes) / self.memory
        return batch / max(reading, batch * (model.operations + model.head_operations) / self.arithmetic)

    def prefill(self, model):
        """Tokens/s without attention: only the last token passes through the head."""
        return PREFILL / ((PREFILL * model.operations + model.head_operations) / self.arithmetic)


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def repeated(run):
    run()
    return statistics.median(run() for _ in range(ROUNDS))


def by_threads(args):
    points = []
    for threads in range(1, args.threads + 1):
        model, machine = Model(args.home / "smollm2-Q4_0.gguf", threads=threads), Machine.of(threads)
        points.append(Point("decode", "SmolLM2 int4", threads, model.decode(model.started()), machine.decode(model)))
        points.append(Point("prefill, 512 tokens", "SmolLM2 int4", threads, model.prefill(), machine.prefill(model)))
    return points


def by_context(args):
    model, machine = Model(args.home / "smollm2-Q4_0.gguf", threads=args.threads), Machine.of(args.threads)
    sequence, points = model.engine.sequence(), []
    for context in CONTEXTS:
        if context > sequence.length:
            model.engine.forward([(sequence, model.ids(context - sequence.length, context))], rows="none")
        points.append(Point("decode", "cygnet int4", context, model.decode([sequence]), machine.decode(model, context)))
    return points + (llama_cpp(args) if args.peers else [])


def llama_cpp(args):
    """The same steps by llama.cpp, through the comparison harness."""
    sys.path.insert(0, str(Path(__file__).parent / "compare"))
    from harness import HERE, Worker, suites

    own = {"engine": "long_llama:LongLlamaCpp", "env": {"PYTHONPATH": str(HERE)}, "context": CONTEXTS[-1] + 2 * NEW}
    entry = suites(args.home)["decode-smollm2"]["engines"]["llama.cpp Q4_0"] | own
    points = []
    with Worker(args.peers, args.home, entry, args.threads) as worker:
        worker.seconds("decode", [5] * PROMPT, NEW)
        for context in CONTEXTS:
            took = worker.seconds("decode", [5 + i % 1000 for i in range(max(context, 1))], NEW)
            points.append(Point("decode", "llama.cpp Q4_0", context, NEW / took, None))
    return points


def by_batch(args):
    model, machine = Model(args.home / "smollm2-Q4_0.gguf", threads=args.threads), Machine.of(args.threads)
    points = []
    for batch in BATCHES:
        sequences = model.started(batch)
        points.append(Point("decode", "SmolLM2 int4", batch, model.decode(sequences), machine.decode(model, batch=batch)))
        for sequence in sequences:
            sequence.release()
    return points


def by_size(args):
    machine, points = Machine.of(args.threads), []
    with tempfile.TemporaryDirectory() as folder:
        made_up = Path(folder) / "random.gguf"
        write_random_llama(made_up, TINY_LLAMA)
        for path, weights in ((args.home / "gpt2", "int4"), (args.home / "smollm2-Q4_0.gguf", "auto"), (made_up, "auto")):
            model = Model(path, weights, args.threads)
            size = round(model.parameters / 1e6)
            points.append(Point("decode", "int4", size, model.decode(model.started()), machine.decode(model)))
            points.append(Point("prefill, 512 tokens", "int4", size, model.prefill(), machine.prefill(model)))
            model.engine.close()
    return points


MEASURES = {"threads": by_threads, "context": by_context, "batch": by_batch, "size": by_size}


def report(plot, points):
    print(f"\n{AXES[plot]:>22}  {'what':36} {'tokens/s':>10} {'limit':>10} {'share':>6}")
    for point in points:
        bound = f"{point.limit:10.1f} {point.rate / point.limit:6.0%}" if point.limit is not None else ""
        print(f"{point.x:>22}  {point.panel + ', ' + point.series:36} {point.rate:10.1f} {bound}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", required=True, type=Path, help="folder with the models of the comparison")
    parser.add_argument("--peers", help="bench.py of the comparison harness: measures llama.cpp beside the context")
    parser.add_argument("-o", "--output", required=True, type=Path, help="folder for the images and scaling.json")
    parser.add_argument("--threads", type=int, default=thread_count(), help="most threads (default: what the process may use)")
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=list(MEASURES))
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    kept = args.output / "scaling.json"
    found = json.loads(kept.read_text()) if kept.exists() else {}
    for plot in args.only:
        points = MEASURES[plot](args)
        report(plot, points)
        draw(args.output / f"{plot}.png", points, AXES[plot], logarithmic=plot in ("batch", "size"))
        found[plot] = [asdict(point) for point in points]
        kept.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
