"""Small tokenizer.json documents."""

from cygnet.tokenizers.byte_alphabet import BYTE_TO_CHAR

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def byte_level_document(merges=(), added=(), **model):
    """A byte-level BPE tokenizer.json: 256 bytes, then what the merges make."""
    tokens = dict.fromkeys([*BYTE_TO_CHAR, *("".join(pair) for pair in merges)])
    return {
        "added_tokens": [{"id": 0, "content": token, "special": True, "normalized": False} for token in added],
        "pre_tokenizer": dict(BYTE_LEVEL),
        "decoder": dict(BYTE_LEVEL),
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [list(pair) for pair in merges], **model},
    }


def word_document(words, **parts):
    """A WordLevel tokenizer.json that splits at white space."""
    vocab = {w: i for i, w in enumerate(words)}
    return {"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type": "WordLevel", "vocab": vocab, "unk_token": words[0]}, **parts}
