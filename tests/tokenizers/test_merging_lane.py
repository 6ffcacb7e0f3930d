"""The compiled lane's short ways (tokens known to merge to themselves, small merges) against merging as it is defined."""

import random

import pytest

from cygnet.tokenizers.bpe import BPE
from cygnet.tokenizers.byte_alphabet import BYTE_TO_CHAR
from cygnet.tokenizers.pretokenizers import ByteLevel
from cygnet.tokenizers.tokenizer import Tokenizer


def merged(word, ranks):
    symbols = [BYTE_TO_CHAR[b] for b in word.encode()]
    while True:
        best = min(((ranks[pair], i) for i, pair in enumerate(zip(symbols, symbols[1:], strict=False)) if pair in ranks), default=None)
        if best is None:
            return symbols
        i = best[1]
        symbols[i : i + 2] = [symbols[i] + symbols[i + 1]]


def random_merges(rng, letters):
    """Merges in any order, so that many tokens do not come about and some come about in another way than they were put together."""
    tokens, merges = list(letters), []
    for _ in range(rng.choice((3, 8, 20, 60))):
        pair = (rng.choice(tokens), rng.choice(tokens))
        if len(pair[0] + pair[1]) <= 12 and pair not in merges:
            merges.append(pair)
            tokens.append(pair[0] + pair[1])
    if rng.random() < 0.6:
        rng.shuffle(merges)
    return merges


@pytest.mark.parametrize("seed", range(100))
def test_ids_are_those_of_merging(seed):
    rng = random.Random(seed)
    letters = "abcd"[: rng.randint(1, 4)]
    merges = random_merges(rng, letters)
    vocab = {c: i for i, c in enumerate(BYTE_TO_CHAR[b] for b in range(256))}
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    tokenizer = Tokenizer(BPE(vocab, [list(m) for m in merges]), pre_tokenizer=ByteLevel(False, True))
    ranks = {pair: i for i, pair in enumerate(merges)}
    for _ in range(40):
        word = "".join(rng.choices(letters, k=rng.choice((1, 2, 3, 5, 8, 12, 15, 16, 17, 40))))
        assert tokenizer.encode(word).ids == [vocab[s] for s in merged(word, ranks)], word


def learned_merges(rng, text, count):
    """Merges of pairs that stand side by side in the text at the time, so that they go into characters, make them whole and cross their ends."""
    symbols, merges = [BYTE_TO_CHAR[b] for b in text.encode()], []
    for _ in range(count):
        pairs = [pair for pair in zip(symbols, symbols[1:], strict=False) if len(pair[0] + pair[1]) < 9]
        if not pairs:
            break
        pair = rng.choice(pairs)
        if pair not in merges:
            merges.append(pair)
        symbols = merged_once(symbols, pair)
    return merges


def merged_once(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        step = 2 if tuple(symbols[i : i + 2]) == pair else 1
        out.append("".join(symbols[i : i + step]))
        i += step
    return out


@pytest.mark.parametrize("seed", range(150))
def test_characters_of_several_bytes(seed):
    """Characters that begin as one symbol are those that merging makes whole in any case."""
    rng = random.Random(seed)
    letters = rng.sample("a éèß中国かな🙂🙃я।न", rng.randint(2, 5))
    merges = learned_merges(rng, "".join(rng.choices(letters, k=60)), rng.choice((4, 12, 40)))
    if seed % 3 == 0:
        rng.shuffle(merges)
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    vocab = {t: i for i, t in enumerate(dict.fromkeys([*BYTE_TO_CHAR, *("".join(pair) for pair in merges)]))}
    tokenizer = Tokenizer(BPE(vocab, [list(pair) for pair in merges]), pre_tokenizer=ByteLevel(add_prefix_space=False, use_regex=False))
    for _ in range(40):
        word = "".join(rng.choices(letters, k=rng.choice((1, 2, 3, 5, 9, 17, 40))))
        expected = [vocab[token] for token in merged(word, ranks)]
        assert tokenizer.encode(word).ids == tokenizer.pipeline.aligned(word, True).ids == expected, word
