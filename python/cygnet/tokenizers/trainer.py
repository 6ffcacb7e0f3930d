"""A small byte-level BPE trainer: shows the algorithm of Sennrich et al. 2016 (arXiv:1508.07909) and writes a tokenizer.json.

Words are counted once; each round merges the pair of neighbouring symbols that is most frequent over all words. Of equally frequent pairs the one
whose spelling comes first goes first: by code points, the left symbol before the right one. That rule depends on the corpus alone, not on any order.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cygnet.errors import OptionError
from cygnet.tokenizers.aligned import AlignedText
from cygnet.tokenizers.byte_alphabet import BYTE_TO_CHAR
from cygnet.tokenizers.json_loader import tokenizer_from_document
from cygnet.tokenizers.pretokenizers import ByteLevel
from cygnet.tokenizers.tokenizer import Tokenizer

Pair = tuple[str, str]


class Corpus:
    """Words as lists of symbols, their counts, and where each pair of symbols occurs."""

    def __init__(self, texts: Iterable[str]):
        split = ByteLevel(add_prefix_space=False)
        counts = Counter(word.text for text in texts for word in split.split(AlignedText.of(text)))
        self.words = [list(word) for word in counts]
        self.counts = list(counts.values())
        self.pairs: Counter[Pair] = Counter()
        self.places: defaultdict[Pair, set[int]] = defaultdict(set)
        for i in range(len(self.words)):
            self._count(i, 1)

    def _count(self, index: int, sign: int) -> None:
        word = self.words[index]
        for pair in zip(word, word[1:], strict=False):
            self.pairs[pair] += sign * self.counts[index]
            self.places[pair].add(index)

    def best(self) -> tuple[Pair, int] | None:
        """The most frequent pair and its count; of equals the first by spelling."""
        if not self.pairs:
            return None
        pair, count = min(self.pairs.items(), key=lambda item: (-item[1], item[0]))
        return (pair, count) if count > 0 else None

    def merge(self, pair: Pair) -> None:
        """Joins the pair everywhere, from left to right."""
        for index in self.places.pop(pair):
            self._count(index, -1)
            word, out, i = self.words[index], [], 0
            while i < len(word):
                step = 2 if word[i : i + 2] == list(pair) else 1
                out.append("".join(word[i : i + step]))
                i += step
            self.words[index] = out
            self._count(index, 1)
        self.pairs = +self.pairs


def learn_merges(texts: Iterable[str], count: int, min_frequency: int = 2) -> list[Pair]:
    """The first `count` merges that a corpus teaches, most frequent pair first.

    Parameters
    ----------
    texts : iterable of str
    count : int
    min_frequency : int
        Pairs seen less often are not merged.

    Examples
    --------
    >>> learn_merges(["low lower lowest"], 2)
    [('l', 'o'), ('lo', 'w')]
    """
    corpus = Corpus(texts)
    merges: list[Pair] = []
    while len(merges) < count and (found := corpus.best()) and found[1] >= min_frequency:
        merges.append(found[0])
        corpus.merge(found[0])
    return merges


def document(merges: list[Pair], special_tokens: Iterable[str] = ()) -> dict[str, Any]:
    """The content of a tokenizer.json: special tokens first, then the 256 bytes, then what the merges make."""
    special = list(dict.fromkeys(special_tokens))
    tokens = [*special, *sorted(BYTE_TO_CHAR), *(a + b for a, b in merges)]
    vocab = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": vocab[token], "content": token, **plain} for token in special],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [list(pair) for pair in merges],
        },
    }


def train_bpe(
    texts: Iterable[str], *, vocab_size: int, special_tokens: Iterable[str] = (), min_frequency: int = 2, path: str | Path | None = None
) -> Tokenizer:
    """A byte-level BPE tokenizer of a corpus.

    Parameters
    ----------
    texts : iterable of str
    vocab_size : int
        Ids in all: special tokens, 256 bytes and merges.
    special_tokens : iterable of str
    min_frequency : int
    path : str or Path, optional
        Where to write the tokenizer.json.

    Raises
    ------
    OptionError
        Where vocab_size leaves no room for the bytes.

    Examples
    --------
    >>> train_bpe(["low lower lowest"], vocab_size=258).encode("low").tokens
    ['low']
    """
    special = list(special_tokens)
    room = vocab_size - 256 - len(set(special))
    if room < 0:
        raise OptionError(f"vocab_size is {vocab_size}; 256 bytes and {len(set(special))} special tokens need at least {vocab_size - room}")
    content = document(learn_merges(texts, room, min_frequency), special)
    if path is not None:
        Path(path).write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    return tokenizer_from_document(content)
