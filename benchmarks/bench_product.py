"""Packed matrix products of one thread beside NumPy's and SciPy's, as shares of what a core can do (limits.c, compiled on the spot).

Times are processor time of the thread, so that a busy machine disturbs them little. A single row is what decoding does: it reads weights that do not
fit the cache, as many copies below each other as fill --memory megabytes; its figure is bytes of weights a second.

    python benchmarks/bench_product.py --kinds float32 int4 --rows 1 512
"""

import argparse
import os
import time

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
from machine_limits import limits  # noqa: E402
from scipy.linalg.blas import sgemm  # noqa: E402

from cygnet._core import _kernels, _products  # noqa: E402

SHAPES = {  # (N, K)
    "SmolLM2": [(576, 576), (960, 576), (1536, 576), (576, 1536), (49152, 576)],
    "GPT-2": [(768, 768), (2304, 768), (3072, 768), (768, 3072)],
    "MiniLM": [(384, 384), (1536, 384), (384, 1536)],
}
FLOATS = ("float32", "float16", "bfloat16")
SHARE_ROWS, SHARE_PANELS = 112, 8  # as the engine cuts a product


def seconds(run, budget):
    """Least processor time of one call."""
    best, calls, begin = np.inf, 1, time.thread_time()
    while time.thread_time() - begin < budget:
        start = time.thread_time()
        for _ in range(calls):
            run()
        spent = time.thread_time() - start
        best = min(best, spent / calls)
        if spent < 1e-3:  # too short for the clock
            calls *= 2
    return best


def tall_weight(generator, n, k, row_bytes, m, megabytes):
    """An (n, k) weight; for a single row, one of so many times n rows that its packed form fills the megabytes."""
    times = max(1, int(megabytes * 2**20 / (n * row_bytes))) if m == 1 else 1
    return np.tile(generator.standard_normal((n, k), np.float32), (times, 1))


def pack(kind, weight, isa):
    if kind in FLOATS:
        return _products.pack(kind, weight, isa=isa)
    return _products.pack_codes(kind, *_products.quantize_weights(kind, weight, isa=isa), isa=isa)


def rows_of(kind, x, first, last):
    return x[first:last] if kind in FLOATS else tuple(part[first:last] for part in x)


def packed_run(kind, weight, x, isa):
    """A function that computes the product once, in the shares of the engine, and the bytes of weights it reads."""
    (n, k), m = weight.shape, x.shape[0]
    packed = pack(kind, weight, isa)
    x = x if kind in FLOATS else _products.quantize_rows(x, isa=isa)
    out = np.zeros((m, n), np.float32)
    step = SHARE_PANELS if m > 1 else len(packed)

    def run():
        for row in range(0, m, SHARE_ROWS):
            share, target = rows_of(kind, x, row, row + SHARE_ROWS), out[row : row + SHARE_ROWS]
            for panel in range(0, len(packed), step):
                _products.product(kind, packed, n, k, share, out=target, panels=(panel, min(panel + step, len(packed))), isa=isa)

    return run, packed.nbytes


def report(name, m, n, k, run, size, top, budget):
    """Prints a line; size is bytes of weights for a single row, else operations."""
    spent = seconds(run, budget)
    rate = size / spent / 1e9
    share = f"{100 * rate / top:4.0f}%" if top else ""
    print(f"{m:4} x {n:5} x {k:4}  {name:22} {1e6 * spent:10.1f} us {rate:7.1f} {'GB/s  ' if m == 1 else 'GFLOP/s'} {share}", flush=True)


def compare(m, n, k, options, limit):
    """All weight kinds and BLAS on one shape."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((m, k), np.float32)
    for isa in options.isas:
        for kind in options.kinds:
            weight = tall_weight(generator, n, k, _products.panel_bytes(kind, k, isa) / _products.panel_rows(isa), m, options.memory)
            run, size = packed_run(kind, weight, x, isa)
            top = "memory" if m == 1 else f"float_{isa.removesuffix('vnni')}" if kind in FLOATS else f"int_{isa}"
            report(f"{isa} {kind}", m, n, k, run, size if m == 1 else 2 * m * n * k, limit.get(top), options.seconds)
    if options.blas:
        weight = tall_weight(generator, n, k, 4 * k, m, options.memory)
        size, top = (weight.nbytes, limit.get("memory")) if m == 1 else (2 * m * n * k, limit.get("float_avx512", limit.get("float_avx2")))
        report("numpy x @ w.T", m, n, k, lambda: x @ weight.T, size, top, options.seconds)
        report("scipy sgemm", m, n, k, lambda: sgemm(1, weight.T, x.T, trans_a=True), size, top, options.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--kinds", nargs="+", default=list(_products.KINDS), choices=list(_products.KINDS))
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 8, 64, 512])
    parser.add_argument("--isas", nargs="+", default=[_kernels.isa_name()], choices=_kernels.isa_names())
    parser.add_argument("--seconds", type=float, default=0.2, help="processor time spent on each figure")
    parser.add_argument("--memory", type=int, default=256, help="megabytes of weights a single row walks through")
    parser.add_argument("--blas", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    limit = limits()
    print("limits: " + ", ".join(f"{name} {rate:.0f}" for name, rate in limit.items()))
    for n, k in dict.fromkeys(shape for model in options.models for shape in SHAPES[model]):
        for m in options.rows:
            compare(m, n, k, options, limit)


if __name__ == "__main__":
    main()
