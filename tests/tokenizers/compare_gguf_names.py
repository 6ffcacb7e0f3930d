"""Every pre-tokenizer name of GGUF files beside llama.cpp, over a vocabulary whose merges join whatever stands together: a cut elsewhere shows.

python tests/tokenizers/compare_gguf_names.py --texts 5000 --only afmoe
"""

import argparse
import functools
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from peer_libraries import LlamaCppPeer
from strange_texts import TextMaker

from cygnet.formats.gguf_write import write_gguf
from cygnet.tokenizers import gguf_split
from cygnet.tokenizers.byte_alphabet import BYTE_TO_CHAR

NORMAL, CONTROL, BYTE = 1, 3, 6
MODEL = {"embedding_length": 8, "block_count": 1, "feed_forward_length": 8, "attention.head_count": 1, "context_length": 8}
# What the rules are about, one or two characters each.
CLOSE = "' ' s S ſ t re LL ve m d \n \r \t 1 12 3456 ٣ 〇 a B é İ ß ʰ \u0308 ं । 日 가 か / _ - ! \xa0 \u3000 \x85 ㄱ ： \ufdd0 \u3040 \ud7ff".split(
    " "
) + [" ", " "]


def texts(count, seed):
    maker, draw = TextMaker(seed), random.Random(seed)
    for i in range(count):
        yield maker.text() if i % 2 else "".join(draw.choices(CLOSE, k=draw.randint(1, 9)))


@functools.cache
def merges(byte_level, count=300):
    """The most frequent pairs of symbols of some texts, joined one after another; line feeds are never joined with others."""
    words = [[BYTE_TO_CHAR[b] for b in text.encode()] if byte_level else list(text.replace(" ", "▁").replace("\0", "")) for text in texts(400, 5)]
    out = []
    for _ in range(count):
        pairs = Counter(pair for word in words for pair in zip(word, word[1:], strict=False) if "\n" not in "".join(pair))
        left, right = max(pairs, key=lambda pair: (pairs[pair], pair))
        out.append((left, right))
        words = [joined(word, left, right) for word in words]
    return out


def joined(word, left, right):
    out = []
    for symbol in word:
        if out and out[-1] == left and symbol == right:
            out[-1] = left + right
        else:
            out.append(symbol)
    return out


def metadata(name, kind=None, **more):
    """Metadata of a file that llama.cpp loads, with the vocabulary of a name."""
    kind = kind or ("whitespace" if name == "whitespace" else "gpt2")
    byte_level = gguf_split.split_of(name).byte_level
    pairs = merges(byte_level)
    letters = BYTE_TO_CHAR if byte_level else [f"<0x{byte:02X}>" for byte in range(256)] + ["\n", "\n\n", "\n\n\n"]
    tokens = list(dict.fromkeys(["<bos>", *letters, *(s for pair in pairs for s in pair), *(a + b for a, b in pairs), "<|im_start|>", "<|im_end|>"]))
    types = [CONTROL if token[:1] + token[-1:] == "<>" and token[1] in "b|" else BYTE if token.startswith("<0x") else NORMAL for token in tokens]
    return of_model(
        {"model": kind, "pre": name, "tokens": tokens, "token_type": np.array(types, np.int32), "merges": [f"{a} {b}" for a, b in pairs], **more}
    )


def of_model(values):
    """Metadata of a file that llama.cpp loads, with these values of tokenizer.ggml."""
    model = {f"llama.{key}": np.uint32(value) for key, value in MODEL.items()}
    model |= {"general.architecture": "llama", "llama.attention.layer_norm_rms_epsilon": np.float32(1e-5)}
    return {**model, **{f"tokenizer.ggml.{key}": value for key, value in {"bos_token_id": np.uint32(0), **values}.items()}}


def compare_vocabulary(values, count, seed=0):
    """None where llama.cpp refuses the file, else the differences as text: (text, facet, values)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.gguf"
        write_gguf(path, {}, values)
        peer = LlamaCppPeer(path)
        if not peer.model:
            return None
        found = []
        for i, text in enumerate(texts(count, seed)):
            found += [(ascii(text), facet, ascii(pair)[:300]) for facet, pair in peer.compare(text, i % 4 == 0).items()]
        peer.close()
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=gguf_split.known_names())
    args = parser.parse_args()
    bad = 0
    for name in args.only or gguf_split.known_names():
        found = compare_vocabulary(metadata(name), args.texts, args.seed)
        print(
            f"{name:26} {'unknown to the library' if found is None else len(found)}",
            *(found or [])[:3],
            sep="\n   "[: 4 if found else 0] or " ",
            flush=True,
        )
        bad += bool(found)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
