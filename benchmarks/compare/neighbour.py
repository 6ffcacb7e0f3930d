"""What a busy neighbour costs: decoding and embedding alone and beside one process that never waits, in turns; prints the share of speed kept.

python benchmarks/compare/neighbour.py --bench PEERS/bench.py --home HOME [--rounds 5]
"""

import statistics
import subprocess
import sys
import time
from contextlib import contextmanager

from harness import Worker, arguments, suites, workloads

ENGINES = {
    "decode-smollm2": ("cygnet int4 (Q4_0)", "cygnet int8", "llama.cpp Q4_0"),
    "embed-minilm": ("cygnet float32", "cygnet int8", "onnxruntime int8"),
}
SETTLE = 0.5  # seconds until the scheduler has placed a process, and threads of the call before sleep


@contextmanager
def neighbour():
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def request(suite, inputs):
    """The call of a suite's work, its arguments and how much work that is."""
    if suite["work"] == "decode":
        return "decode", (inputs.token_ids(suite["prompt"], suite["vocab"]), suite["new"]), suite["new"]
    return "embed", (inputs.passages(suite["texts"]),), suite["texts"]


def measure(worker, call, rounds):
    """Seconds alone and beside the neighbour, a pair for each round."""
    worker.seconds(*call)
    pairs = []
    for _ in range(rounds):
        time.sleep(SETTLE)
        alone = worker.seconds(*call)
        with neighbour():
            time.sleep(SETTLE)
            pairs.append((alone, worker.seconds(*call)))
    return pairs


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    inputs, entries = workloads(args.bench), suites(args.home)
    print(f"\n## neighbour  (alone and beside one busy process; {args.threads} threads, {args.rounds} rounds)")
    print(f"{'work':16} {'engine':24} {'alone':>9} {'beside':>9} {'kept':>6} {'min':>6} {'max':>6}")
    for name, engines in ENGINES.items():
        operation, details, amount = request(entries[name], inputs)
        for engine in engines:
            with Worker(args.bench, args.home, entries[name]["engines"][engine], args.threads) as worker:
                pairs = measure(worker, (operation, *details), args.rounds)
            alone, beside = (amount / statistics.median(seconds) for seconds in zip(*pairs, strict=True))
            kept = [a / b for a, b in pairs]
            print(f"{name:16} {engine:24} {alone:9.1f} {beside:9.1f} {statistics.median(kept):6.0%} {min(kept):6.0%} {max(kept):6.0%}", flush=True)


if __name__ == "__main__":
    main()
