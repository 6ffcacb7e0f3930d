"""Unigram documents of the shapes that real models have: the chain of normalizers and the pre-tokenizer of each, around a small vocabulary.

    python tests/tokenizers/lane_documents.py FOLDER TOKENIZER_JSON CORPUS
    python tests/tokenizers/compare_with_peers.py --root FOLDER --texts 50000

The first writes them with vocabularies that the `tokenizers` library trains on a text, and the character map of a real tokenizer.json.
"""

import json
import sys
from pathlib import Path

BYTES = [[f"<0x{byte:02X}>", 0.0] for byte in range(256)]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def replace(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def in_order(*normalizers):
    return {"type": "Sequence", "normalizers": list(normalizers)}


def metaspace(scheme="always", split=True):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def strip(left=True, right=True):
    return {"type": "Strip", "strip_left": left, "strip_right": right}


NFC, NFD, NFKC, NFKD, LOWERCASE, STRIP_ACCENTS, NMT = ({"type": name} for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"))
QUOTES = [replace("``", '"'), replace("''", '"')]
SQUEEZE = replace(" {2,}", " ", "Regex")
MARK_RUNS = replace(" {2,}", "▁", "Regex")
SPLIT_FIRST = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace()]}
SPLIT_FIRST_WHOLE = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace(split=False)]}


def shapes(charsmap=None):
    """name -> (normalizer, pre-tokenizer); charsmap: a Precompiled normalizer, without which the shapes have none."""
    own = [charsmap] if charsmap else []
    return {
        "albert": (in_order(*QUOTES, NFKD, STRIP_ACCENTS, LOWERCASE, *own, SQUEEZE), metaspace()),
        "albert-split": (in_order(*QUOTES, NFKD, STRIP_ACCENTS, LOWERCASE, *own), SPLIT_FIRST),
        "xlnet": (in_order(*QUOTES, NFKD, STRIP_ACCENTS, *own, SQUEEZE), metaspace()),
        "xlm-roberta": (in_order(*own, SQUEEZE), metaspace()),
        "xlm-roberta-strip": (in_order(*own, strip(left=False), MARK_RUNS), metaspace()),
        "mbart": (in_order(*own), SPLIT_FIRST),
        "mt5-whole": (in_order(*own, strip(left=False), MARK_RUNS), metaspace(split=False)),
        "t5-first": (in_order(*own, strip(left=False), MARK_RUNS), metaspace("first")),
        "t5-first-whole": (in_order(*own, strip(), SQUEEZE), metaspace("first", split=False)),
        "camembert": (in_order(replace(r"\s+", " ", "Regex"), *own, SQUEEZE), metaspace()),
        "deberta-v3": (in_order(strip(), *own, SQUEEZE), {"type": "Sequence", "pretokenizers": [metaspace()]}),
        "nmt": (in_order(NMT, NFKC, LOWERCASE, replace(r"\s{2,}", " ", "Regex"), strip()), metaspace()),
        "nfc-whole": (in_order(NFC, SQUEEZE), metaspace(split=False)),
        "signs-alone": (in_order({"type": "Prepend", "prepend": "▁"}, replace(" ", "▁")), None),
        "no-words": (NFD, None),
        "never": (in_order(NFKC, replace("  ", "")), metaspace("never", split=False)),
        "whole-words": (strip(), SPLIT_FIRST_WHOLE),
    }


def unigram_document(vocab, normalizer, pre_tokenizer, byte_fallback=False):
    """A tokenizer.json with a Unigram model whose unknown piece is <unk>."""
    special = {"single_word": False, "rstrip": False, "normalized": False, "special": True}
    pieces = [piece for piece, _ in vocab]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": pieces.index(t), "content": t, "lstrip": t == "<pad>", **special} for t in SPECIAL if t in pieces],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "decoder": metaspace(),
        "model": {"type": "Unigram", "unk_id": pieces.index("<unk>"), "vocab": vocab, "byte_fallback": byte_fallback},
    }


def trained(lines, size, split):
    """Pieces and scores of a Unigram model; with split none reaches from one word into the next."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(split=split)
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    return json.loads(tokenizer.to_str())["model"]["vocab"]


def main():
    folder, real, corpus = map(Path, sys.argv[1:])
    normalizer = json.loads(real.read_text(encoding="utf-8"))["normalizer"]
    charsmap = next(n for n in normalizer.get("normalizers", [normalizer]) if n["type"] == "Precompiled")
    lines = corpus.read_text(encoding="utf-8").splitlines()
    vocabularies = {"apart": trained(lines, 8000, True), "joined": trained(lines, 12000, False)}
    vocabularies["bytes"] = vocabularies["apart"][:4] + BYTES + vocabularies["apart"][4:]
    for kind, vocab in vocabularies.items():
        for name, (normalizer, pre_tokenizer) in shapes(charsmap).items():
            place = folder / "tokenizers" / f"{name}-{kind}"
            place.mkdir(parents=True, exist_ok=True)
            (place / "meta.json").write_text(json.dumps({"engine": "hf", "load": ["tokenizer.json"]}))
            document = unigram_document(vocab, normalizer, pre_tokenizer, kind == "bytes")
            (place / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main()
