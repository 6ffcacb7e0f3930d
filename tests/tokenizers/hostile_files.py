"""Damaged and absurd tokenizer files of every kind: each gives a tokenizer that works, or a TokenizerError that names the file.

    python tests/tokenizers/hostile_files.py --cases 5000            # of each kind; tests/tokenizers/test_hostile_files.py runs a few

A case runs in a process with a GB of memory more and a few seconds; what is left of it is one line for each way it went wrong.
"""

import argparse
import multiprocessing
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from hostile_folders import FOLDERS, GGUF
from hostile_values import damaged_bytes, damaged_json, damaged_metadata

from cygnet import Tokenizer
from cygnet.errors import CygnetError, TokenizerError
from cygnet.tokenizers.gguf_loader import from_metadata

TEXTS = ["", "the ab  straße\n12 <s>foo</s>", "日本語 \0\ud800 ▁👍🏽é", "aab" * 40]
KINDS = [*FOLDERS, "gguf metadata"]
MEMORY = 1 << 30
SECONDS = 5


def case(kind, seed, folder):
    """Runs one case; None where all went as it should, else what was wrong."""
    draw = random.Random(f"{kind} {seed}")
    start, tokenizer = time.process_time(), None
    try:
        if kind == "gguf metadata":
            tokenizer = from_metadata(damaged_metadata(draw, draw.choice(GGUF)()), str(folder))
        else:
            write(folder, damaged_folder(draw, FOLDERS[kind](draw)))
            tokenizer = Tokenizer.from_pretrained(folder)
        use(tokenizer, draw)
    except TokenizerError as error:
        if tokenizer is None and str(folder) not in str(error):
            return f"names no place: {error}"[:300]
    except CygnetError as error:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:120]} at {Path(at.filename).name}:{at.lineno}"
    took = time.process_time() - start
    return f"took {took:.1f} s" if took > SECONDS else None


def damaged_folder(draw, files):
    """The files with one of them damaged; JSON as bytes or as values."""
    name = draw.choice(list(files))
    if name.endswith(".json") and draw.random() < 0.8:
        files[name] = damaged_json(draw, files[name])
    else:
        files[name] = damaged_bytes(draw, files[name])
    return files


def write(folder, files):
    for old in folder.iterdir():
        old.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def use(tokenizer, draw):
    """Everything a tokenizer does; options that a file asks for may be impossible for a text, which is said by an error of ours."""
    for text in TEXTS:
        tokenizer.pipeline.aligned(text, True)
        try:
            for encoding in (tokenizer.encode(text), tokenizer.encode(text, "b", add_special_tokens=False), *tokenizer.encode_batch([text, "a"])):
                assert len(encoding.offsets) == len(encoding.tokens) == len(encoding.word_ids) == len(encoding.type_ids) == len(encoding.ids)
        except CygnetError as error:
            if not isinstance(error, TokenizerError) and not any(option in str(error) for option in ("max_length", "stride", "truncation")):
                raise
            encoding = None
        ids = [*(encoding.ids if encoding else ()), *(draw.choice((draw.randrange(400), draw.randrange(2**31), 2**31 - 1, 2**62)) for _ in range(8))]
        stream = tokenizer.stream_decoder()
        for skip in (True, False):
            assert isinstance(tokenizer.decode(ids, skip_special_tokens=skip), str)
        assert isinstance("".join([stream.push(i) for i in ids]) + stream.flush(), str)
    for name in ("bos_id", "eos_id", "pad_id", "model_max_length", "chat_template"):
        getattr(tokenizer, name)


def run_chunk(kind, first, count, at, found):
    """In a process of its own: cases first ... first + count - 1."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            at.value = seed
            wrong = case(kind, seed, Path(folder))
            if wrong:
                found.put((seed, wrong))
    at.value = first + count


def run(kind, count, first=0, chunk=500):
    """(seed, what went wrong) of `count` cases of a kind; a process that dies or hangs is one of them."""
    context = multiprocessing.get_context("fork")
    out, seed, end = [], first, first + count
    while seed < end:
        at, found = context.Value("q", seed), context.SimpleQueue()
        until = min(end, seed + chunk)
        process = context.Process(target=run_chunk, args=(kind, seed, until - seed, at, found))
        process.start()
        before, alive = -1, True
        while process.is_alive():
            process.join(20 if before == at.value else 4)
            if process.is_alive() and before == at.value:
                alive = False
                process.kill()
                process.join()
            before = at.value
        while not found.empty():
            out.append(found.get())
        if at.value < until:
            out.append((at.value, f"ended with {process.exitcode}" if alive else "hangs"))
            at.value += 1
        seed = at.value
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=KINDS)
    args = parser.parse_args()
    bad = 0
    for kind in args.kind or KINDS:
        start, found = time.monotonic(), run(kind, args.cases, args.seed)
        bad += len(found)
        print(f"{kind:16} {args.cases:7} cases {len(found):5} wrong {time.monotonic() - start:6.0f} s", flush=True)
        seen = Counter()
        for seed, wrong in found:
            sort = wrong[:60]
            seen[sort] += 1
            if seen[sort] <= 2:
                print(f"   {seed} {ascii(wrong)}", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
