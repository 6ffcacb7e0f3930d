"""`cygnet embed`: one vector a line of text, as JSON lines or as a .npy file."""

from __future__ import annotations

import os
import sys

from cygnet.cli.inputs import line_texts
from cygnet.cli.model import open_model
from cygnet.cli.parser import Parser, add_line_options, add_model_options, utf8_text
from cygnet.cli.progress import Progress
from cygnet.errors import OptionError

# Texts embedded between two writes.
BLOCK = 1024


def configure(parser: Parser) -> None:
    add_line_options(parser)
    add_model_options(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="FILE.npy for a float32 matrix, FILE.jsonl for JSON lines (default: JSON lines on standard output)"
    )
    parser.add_argument("--prompt", type=utf8_text, metavar="TEXT", help="text in front of every text")
    parser.add_argument("--prompt-name", metavar="NAME", help="one of the prompts that the model names (query, passage ...)")
    parser.add_argument("--pooling", metavar="MODE", help="cls, mean, max, lasttoken, mean_sqrt_len or weightedmean in place of the model's own")
    parser.add_argument("--normalize", action="store_true", default=None, help="divide vectors by their length even if the model does not")
    parser.add_argument("--no-truncate", action="store_true", help="fail on texts beyond the length limit instead of cutting them")


def run(args) -> None:
    if args.output and not args.output.endswith((".npy", ".jsonl", ".ndjson")):
        raise OptionError(f"--output {args.output}: a name that ends in .npy or .jsonl is wanted")
    model = open_model(args, "Encoder")
    progress = Progress("texts")
    cut = 0
    writer = _NpyWriter(args.output) if (args.output or "").endswith(".npy") else _JsonWriter(args.output)
    done = 0
    with writer, progress:
        for texts in _blocks(line_texts(args)):
            options = {"prompt": args.prompt, "prompt_name": args.prompt_name, "pooling": args.pooling, "normalize": args.normalize}
            found = model.embed(texts, truncate=not args.no_truncate, report=True, progress=lambda n, done=done: progress(done + n), **options)
            writer.write(texts, found.vectors)
            cut += len(found.truncated)
            done += len(texts)
        writer.finish(model.dimension)
    if cut:
        sys.stderr.write(f"cygnet embed: {cut} of {done} texts were cut to {model.max_length} tokens\n")


def _blocks(texts):
    block = []
    for text in texts:
        block.append(text)
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block


class _JsonWriter:
    """{"index", "embedding"} a line."""

    def __init__(self, path: str | None):
        self._file = open(path, "w", encoding="utf-8") if path else sys.stdout
        self._index = 0

    def write(self, texts, vectors) -> None:
        for vector in vectors:
            numbers = ", ".join(format(float(x), ".9g") for x in vector)
            self._file.write(f'{{"index": {self._index}, "embedding": [{numbers}]}}\n')
            self._index += 1
        self._file.flush()

    def finish(self, dimension: int) -> None:
        """Nothing is left to write."""

    def __enter__(self):
        return self

    def __exit__(self, *exception) -> None:
        if self._file is not sys.stdout:
            self._file.close()


class _NpyWriter:
    """One (n, d) float32 array; written at the end, because its header holds n. No file is left behind where something fails."""

    def __init__(self, path: str):
        self._path = path
        self._file = open(path, "wb")
        self._blocks: list = []

    def write(self, texts, vectors) -> None:
        self._blocks.append(vectors)

    def finish(self, dimension: int) -> None:
        import numpy as np

        np.save(self._file, np.concatenate([np.zeros((0, dimension), np.float32), *self._blocks]))

    def __enter__(self):
        return self

    def __exit__(self, kind, *exception) -> None:
        self._file.close()
        if kind is not None:
            os.unlink(self._path)
