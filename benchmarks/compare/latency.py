"""How long one short text takes to become a vector, every engine in turns: median and 95th percentile of many single calls.

    python benchmarks/compare/latency.py --bench PEERS/bench.py --home HOME [--calls 500]

Engines are those of the suite `latency-minilm`. A turn is a run of calls of one engine, one after another as a server that answers queries makes
them; the pause between turns lets the threads of the engine before go to sleep.
"""

import statistics
import time
from contextlib import ExitStack

from harness import Worker, arguments, suites

TEXT = "A careful engineer measures the shortest way home while the rain keeps falling."
CALLS_A_TURN, PAUSE = 20, 0.3
CLASSES = ("float32", "int8")


def measure(workers, calls):
    """Engine -> seconds of every call."""
    for worker in workers.values():
        for _ in range(CALLS_A_TURN):
            worker.seconds("embed", [TEXT])
    took = {name: [] for name in workers}
    for _ in range(-(-calls // CALLS_A_TURN)):
        for name, worker in workers.items():
            time.sleep(PAUSE)
            took[name] += [worker.seconds("embed", [TEXT]) for _ in range(CALLS_A_TURN)]
    return took


def report(took):
    print(f"{'engine':24} {'median ms':>10} {'p95 ms':>8} {'times cygnet':>13}")
    medians = {name: statistics.median(times) for name, times in took.items()}
    for kind in CLASSES:
        for name in (name for name in took if name.endswith(kind)):
            p95 = statistics.quantiles(took[name], n=20)[-1]
            print(f"{name:24} {1e3 * medians[name]:10.2f} {1e3 * p95:8.2f} {medians[name] / medians[f'cygnet {kind}']:13.2f}")


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=500)
    args = parser.parse_args()
    suite = suites(args.home)["latency-minilm"]
    with ExitStack() as stack:
        workers = {n: stack.enter_context(Worker(args.bench, args.home, entry, args.threads)) for n, entry in suite["engines"].items()}
        took = measure(workers, args.calls)
    print(f"\n## latency-minilm  ({suite['what']}; {args.threads} threads, {args.calls} calls)")
    report(took)


if __name__ == "__main__":
    main()
