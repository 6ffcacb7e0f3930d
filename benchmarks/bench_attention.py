"""Attention of one thread and one key head beside plain NumPy, as a share of what a core can multiply (limits.c).

Times are processor time of the thread, so that a busy machine disturbs them little. Prefill counts the whole square, or the triangle if causal.

    python benchmarks/bench_attention.py --head-dims 64 --isa avx2
"""

import argparse

from bench_product import seconds  # first: it holds BLAS to one thread

import numpy as np  # isort: skip
from machine_limits import limits  # isort: skip

from cygnet._core import _attention, _kernels  # isort: skip
from cygnet.reference import ops  # isort: skip

CASES = [  # queries, heads that share the keys, keys, causal
    (32, 1, 32, False),
    (128, 1, 128, False),
    (512, 1, 512, True),
    (512, 3, 512, True),
    (1, 1, 2048, True),
    (1, 3, 2048, True),
    (1, 8, 2048, True),
]


def measure(queries, heads, keys, causal, dim, half, isa, budget):
    """Seconds of the kernel, and of NumPy on the same arrays."""
    generator = np.random.default_rng(0)
    query = generator.standard_normal((queries, heads, dim), np.float32)
    key, value = (generator.standard_normal((keys, dim), np.float32) for _ in range(2))
    blocks = np.zeros((-(-keys // _attention.KEY_BLOCK), 2 * _attention.KEY_BLOCK * dim * (2 if half else 4)), np.uint8)
    _attention.store_kv(key, value, blocks, isa)
    out = np.empty_like(query)

    def kernel():
        _attention.attention(query, blocks, keys, out, scale=dim**-0.5, causal=causal, first_query=keys - queries, isa=isa)

    turned = np.ascontiguousarray(query.transpose(1, 0, 2))

    def numpy():
        ops.attention(turned, key[None], value[None], causal=causal)

    return seconds(kernel, budget), seconds(numpy, budget)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--isa", nargs="+", default=[_kernels.isa_name()], choices=_kernels.isa_names())
    parser.add_argument("--head-dims", nargs="+", type=int, default=[32, 64, 128])
    parser.add_argument("--budget", type=float, default=0.2, help="seconds for each figure")
    arguments = parser.parse_args()
    limit = limits()
    print(f"{'isa':<11} {'D':>4} {'queries':>8} {'heads':>6} {'keys':>6} {'kv':>8} {'GFLOP/s':>8} {'of limit':>9} {'over NumPy':>11}")
    for isa in arguments.isa:
        most = limit.get(f"float_{isa.removesuffix('vnni')}")
        for dim in arguments.head_dims:
            for queries, heads, keys, causal in CASES:
                for half in (False, True):
                    ours, plain = measure(queries, heads, keys, causal, dim, half, isa, arguments.budget)
                    pairs = sum(min(keys, keys - queries + i + 1) for i in range(queries)) if causal else queries * keys
                    rate = 4 * pairs * heads * dim / ours / 1e9
                    share = f"{rate / most:9.0%}" if most else f"{'':>9}"
                    kind = "float16" if half else "float32"
                    print(f"{isa:<11} {dim:>4} {queries:>8} {heads:>6} {keys:>6} {kind:>8} {rate:>8.1f} {share} {plain / ours:>10.1f}x")


if __name__ == "__main__":
    main()
