"""Tokenizers side by side on one text: first pass, warm passes, two threads, decoding, loading.

    python benchmarks/bench_tokenizers.py --text FILE tokenizer.json [more.json ...]

cygnet runs beside those of `tokenizers`, `fastokens` and `tokie` that are installed and read the file. The text is cut into documents of about 8000
characters, and every engine encodes them in turns with the others, one document a call, ids as a list, without special tokens. MB/s are bytes of
UTF-8 by CPU time (two threads: by wall time, one encode_batch call); "first" has only the first 20 documents in its caches. A cross beside an
engine says that its ids differ from those of `tokenizers`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("RAYON_NUM_THREADS", "2")


@dataclass
class Engine:
    """One library with one tokenizer.

    Attributes
    ----------
    encode : callable, text -> list of int
    decode : callable, list of int -> str
    batch : callable, (texts, threads) -> list of results, optional
    load : float
        Seconds of CPU time.
    """

    name: str
    encode: Callable
    decode: Callable
    batch: Callable | None
    load: float
    seconds: dict[str, float] = field(default_factory=dict)


def cygnet_engine(path: str) -> tuple:
    from cygnet import Tokenizer

    t = Tokenizer.from_file(path)
    t.no_truncation()
    t.no_padding()
    return (
        lambda text: t.encode(text, add_special_tokens=False).ids,
        t.decode,
        lambda texts, threads: t.encode_batch(texts, threads=threads, add_special_tokens=False),
    )


def library_engine(path: str) -> tuple:
    t = importlib.import_module("tokenizers").Tokenizer.from_file(path)
    t.no_truncation()
    t.no_padding()
    return (lambda text: t.encode(text, add_special_tokens=False).ids), t.decode, None


def fastokens_engine(path: str) -> tuple:
    t = importlib.import_module("fastokens")._native.Tokenizer.from_file(path)
    return (lambda text: t.encode(text, add_special_tokens=False).ids), t.decode, None


def tokie_engine(path: str) -> tuple:
    t = importlib.import_module("tokie").Tokenizer.from_json(path)
    return (lambda text: t.encode(text, add_special_tokens=False).ids), t.decode, None


MAKERS = {"tokenizers": library_engine, "cygnet": cygnet_engine, "fastokens": fastokens_engine, "tokie": tokie_engine}


def documents(text: str, size: int = 8000) -> list[str]:
    out, lines, held = [], [], 0
    for line in text.splitlines(keepends=True):
        lines.append(line)
        held += len(line)
        if held >= size:
            out.append("".join(lines))
            lines, held = [], 0
    return [*out, "".join(lines)] if lines else out


def engines_for(path: str) -> list[Engine]:
    out = []
    for name, make in MAKERS.items():
        begin = time.process_time()
        try:
            made = make(path)
        except (ImportError, ValueError, AttributeError) as error:
            print(f"  {name}: {str(error)[:80]}")
            continue
        out.append(Engine(name, *made, load=time.process_time() - begin))
    return out


def keep_least(engine: Engine, what: str, run: Callable, clock: Callable[[], float] = time.process_time) -> None:
    begin = clock()
    run()
    seconds = clock() - begin
    engine.seconds[what] = min(seconds, engine.seconds.get(what, seconds))


def measure(engines: list[Engine], texts: list[str], rounds: int) -> dict[str, list[list[int]]]:
    ids = {}
    for engine in engines:
        for text in texts[:20]:
            engine.encode(text)
        keep_least(engine, "first", lambda e=engine: [e.encode(t) for t in texts])
        ids[engine.name] = [list(engine.encode(t)) for t in texts]
    for _ in range(rounds):
        for engine in engines:
            keep_least(engine, "warm", lambda e=engine: [e.encode(t) for t in texts])
            keep_least(engine, "decode", lambda e=engine: [e.decode(i) for i in ids[e.name]])
            for threads in (1, 2) if engine.batch else ():
                keep_least(engine, f"batch{threads}", lambda e=engine, n=threads: e.batch(texts, n), time.perf_counter)
    return ids


def report(engines: list[Engine], ids: dict[str, list[list[int]]], size: float) -> None:
    print(f"  {'':12}{'first':>9}{'warm':>9}{'1 thread':>10}{'2 threads':>11}{'decode':>9}{'load s':>9}")
    for e in engines:
        speeds = {what: size / seconds for what, seconds in e.seconds.items()}
        batch = [f"{speeds[f'batch{n}']:.0f}" if f"batch{n}" in speeds else "" for n in (1, 2)]
        same = " " if ids[e.name] == ids.get("tokenizers", ids[e.name]) else "x"
        print(f"  {e.name:11}{same}{speeds['first']:9.0f}{speeds['warm']:9.0f}{batch[0]:>10}{batch[1]:>11}{speeds['decode']:9.0f}{e.load:9.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--text", required=True, type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    text = options.text.read_text(encoding="utf-8")
    texts, size = documents(text), len(text.encode()) / 1e6
    for path in options.files:
        print(path)
        engines = engines_for(path)
        report(engines, measure(engines, texts, options.rounds), size)


if __name__ == "__main__":
    main()
