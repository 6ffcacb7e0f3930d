"""Random texts through every real tokenizer of the conformance folder, beside the library that owns its format.

    python tests/tokenizers/compare_with_peers.py --texts 50000 --jobs 2          # hours; tests/tokenizers/test_against_peers.py runs a few
    python tests/tokenizers/compare_with_peers.py --only 'gguf-*' --seed 7

Prints for each tokenizer how many texts were compared and how many differed, and the differing texts cut down to what is needed.
"""

import argparse
import fnmatch
import json
import lzma
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from peer_libraries import LlamaCppPeer, SentencePiecePeer, TokenizersPeer
from strange_texts import TextMaker

PEERS = {"hf": TokenizersPeer, "spm": SentencePiecePeer, "gguf": LlamaCppPeer}
THOROUGH_EVERY = 5
WIDTH = 700


def unpack(folder, target):
    """The tokenizer's own files, uncompressed, in `target`."""
    for file in folder.iterdir():
        if file.suffix == ".xz":
            (target / file.stem).write_bytes(lzma.decompress(file.read_bytes()))
        else:
            shutil.copy(file, target / file.name)


def engine_of(folder):
    """The kind of reference of a conformance folder: hf, spm or gguf."""
    return json.loads((folder / "meta.json").read_text())["engine"]


def open_peer(folder, target):
    """The tokenizer of a conformance folder beside its library."""
    unpack(folder, target)
    return PEERS[engine_of(folder)](target / json.loads((folder / "meta.json").read_text())["load"][0])


def shrink(peer, text, thorough, facet):
    """A shorter text in which a facet of the same name still differs."""

    def differs(candidate):
        return facet in peer.compare(candidate, thorough)

    size = max(1, len(text) // 2)
    while size:
        at = 0
        while at < len(text):
            shorter = text[:at] + text[at + size :]
            if differs(shorter):
                text = shorter
            else:
                at += size
        size //= 2
    return text


def compare(peer, count, seed, show=2):
    """Number of texts that differ, and a report of the first ones."""
    maker = TextMaker(seed, peer.marks(), peer.token_texts())
    differing, report, seen = 0, [], Counter()
    for i in range(count):
        text, thorough = maker.text(), i % THOROUGH_EVERY == 0
        found = peer.compare(text, thorough)
        if not found:
            continue
        differing += 1
        facet = next(iter(found))
        seen[facet] += 1
        if seen[facet] <= show:
            small = shrink(peer, text, thorough, facet)
            report.append(f"  {ascii(small)} {facet}: {ascii(peer.compare(small, thorough).get(facet))}"[:WIDTH])
    return differing, [*report, f"  {dict(seen)}"] if seen else report


def run(job):
    folder, count, seed = job
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as target:
        try:
            differing, report = compare(open_peer(folder, Path(target)), count, seed)
        except Exception as error:
            return f"{folder.name:32} failed: {type(error).__name__}: {error}", [], -1
    return f"{folder.name:32} {count:8} texts {differing:6} differ {time.monotonic() - start:8.0f} s", report, differing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2].parent / "shared" / "conformance")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--only", action="append", metavar="GLOB")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    folders = sorted(meta.parent for meta in (args.root / "tokenizers").glob("*/meta.json"))
    jobs = [(f, args.texts, args.seed) for f in folders if not args.only or any(fnmatch.fnmatch(f.name, g) for g in args.only)]
    bad = 0
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=1) as pool:
        for line, report, differing in pool.imap(run, jobs):
            print("\n".join([line, *report]), flush=True)
            bad += differing != 0
    print(f"{len(jobs)} tokenizers, {bad} with differences")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
