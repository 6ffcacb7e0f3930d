"""Random tokenizer.json documents beside the `tokenizers` library: each with a few strange texts.

python tests/tokenizers/compare_documents.py --documents 20000 --seed 5 2>/dev/null      # tests/tokenizers/test_random_documents.py runs a few
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from compare_with_peers import shrink
from peer_libraries import TokenizersPeer, reraise_or
from random_documents import WORDS, DocumentMaker
from strange_texts import TextMaker


def open_document(document, path):
    """The document in both libraries; None where the library refuses it or cannot find its added tokens."""
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        import tokenizers

        theirs = tokenizers.Tokenizer.from_file(str(path))
        if not can_be_found(document["added_tokens"], theirs.normalizer):
            return None
    except BaseException as error:
        reraise_or(error)
        return None
    return TokenizersPeer(path)


def can_be_found(added, normalizer):
    """Whether the library has one answer where it looks for added tokens in normalised text.

    Of two that become the same there it finds either, as the order of a hash table has it; after one that becomes nothing it looks without end.
    """
    if normalizer is None:
        return True
    contents = [normalizer.normalize_str(token["content"]) for token in added if token["normalized"]]
    return "" not in contents and len({*contents}) == len(contents)


def compare_document(seed, path, texts, charsmap=None):
    """None where the library refuses the document, else the differences: (facet, text, values) of the first text of each facet."""
    document = DocumentMaker(seed, charsmap).document()
    peer = open_document(document, path)
    if peer is None:
        return None
    contents = [token["content"] for token in document["added_tokens"]]
    maker = TextMaker(seed, contents, WORDS, longest=6)
    found = {}
    for i in range(texts):
        text = maker.text()[:60]
        for facet in peer.compare(text, i % 2 == 0):
            if facet not in found:
                small = shrink(peer, text, i % 2 == 0, facet)
                found[facet] = (small, peer.compare(small, i % 2 == 0).get(facet))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--texts", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    seen, refused, bad = Counter(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seed, args.seed + args.documents):
            try:
                found = compare_document(seed, Path(folder) / "tokenizer.json", args.texts)
            except Exception as error:
                found = {f"{type(error).__name__}: {str(error).split('tokenizer.json')[-1][:70]}": None}
            if found is None:
                refused += 1
                continue
            bad += bool(found)
            for facet, values in list(found.items())[:1]:
                seen[facet] += 1
                if seen[facet] <= 3:
                    print(f"{seed} {facet}: {ascii(values)[:600]}", flush=True)
    print(f"{args.documents} documents, {refused} without an answer of the library, {bad} differ; {dict(seen)}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
