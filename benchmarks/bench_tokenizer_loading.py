"""How long tokenizer files take to load, beside the library that each kind comes from.

    python benchmarks/bench_tokenizer_loading.py FILE_OR_FOLDER ...

A folder stands for every tokenizer.json, .model and .spm below it. A tokenizer.json is loaded by `tokenizers` too, the others by `sentencepiece`, in
turns with cygnet. A figure is the least CPU time of the rounds in milliseconds, libraries imported, the file in the system's memory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def library_of(path: Path) -> tuple[str, Callable[[str], Any]]:
    """The library that a kind of file comes from, and what loads it there."""
    if path.suffix == ".json":
        import tokenizers

        return "tokenizers", tokenizers.Tokenizer.from_file
    import sentencepiece

    return "sentencepiece", lambda name: sentencepiece.SentencePieceProcessor(model_file=name)


def files_of(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    return sorted(found for pattern in ("tokenizer.json", "*.model", "*.spm") for found in source.rglob(pattern))


def milliseconds(load: Callable[[str], Any], path: Path) -> float:
    begin = time.process_time()
    made = load(str(path))
    seconds = time.process_time() - begin
    del made
    return 1e3 * seconds


def main() -> None:
    from cygnet import Tokenizer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"{'':36}{'MB':>7}{'cygnet':>9}{'library':>9}{'ratio':>7}")
    for path in [file for source in options.sources for file in files_of(source)]:
        name, load = library_of(path)
        pairs = [(milliseconds(Tokenizer.from_file, path), milliseconds(load, path)) for _ in range(options.rounds)]
        ours, theirs = (min(column) for column in zip(*pairs, strict=True))
        label = str(Path(path.parent.name, path.name))
        print(f"{label:36}{path.stat().st_size / 1e6:7.2f}{ours:9.2f}{theirs:9.2f}{ours / theirs:7.2f}  {name}")


if __name__ == "__main__":
    main()
