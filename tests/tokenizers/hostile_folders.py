"""Small model folders of every kind of tokenizer file, whole; hostile_files.py damages them."""

import base64
import json
import struct
import tempfile
from pathlib import Path

import numpy as np
from random_documents import DocumentMaker
from sentencepiece_files import BPE, BYTES, CHAR, LETTERS, NORMAL, UNIGRAM, USER_DEFINED, WORD, model
from test_gguf_vocabularies import ALPHABET, GPT2, LLAMA, MERGES, metadata
from test_renumbered import FILES

from cygnet.formats.gguf_write import write_gguf
from cygnet.tokenizers.byte_alphabet import BYTE_TO_CHAR

CONFIG = {
    "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False}, "unk_token": "<unk>", "pad_token": None, "model_max_length": 512,
    "clean_up_tokenization_spaces": True, "chat_template": "{{ messages }}", "add_bos_token": True, "do_lower_case": False,
    "add_prefix_space": False, "additional_special_tokens": ["<s>"], "pat_str": r"\s?\w+|\s+|[^\s\w]+",
    "added_tokens_decoder": {"0": {"content": "<s>", "special": True, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False}},
}  # fmt: skip
SPECIAL_MAP = {"bos_token": "<s>", "eos_token": "</s>", "mask_token": {"content": "<mask>", "lstrip": True}, "additional_special_tokens": ["<s>"]}


def packed(**files):
    return {name.replace("__", "."): json.dumps(value).encode() for name, value in files.items()}


def json_folder(draw):
    document = DocumentMaker(draw.randrange(10**6)).document()
    return packed(tokenizer__json=document, tokenizer_config__json=CONFIG, special_tokens_map__json=SPECIAL_MAP)


def gpt2_folder(draw):
    tokens = [*BYTE_TO_CHAR, "lo", "low", "Ġlow", "er", "<s>", "</s>", "<pad>", "<unk>", "<mask>"]
    tokens = tokens if draw.random() < 0.5 else [*tokens, "<|endoftext|>"]
    merges = b"#version: 0.2\nl o\nlo w\n" + "Ġ low\ne r\n".encode()
    vocab = {token: i for i, token in enumerate(tokens)}
    return {**packed(vocab__json=vocab, tokenizer_config__json={**CONFIG, "added_tokens_decoder": {}}), "merges.txt": merges}


def bert_folder(draw):
    lines = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##s", "a", "##b", "12", "日", "é", "<s>"]
    config = {"do_lower_case": draw.random() < 0.5, "tokenize_chinese_chars": True, "strip_accents": None, "unk_token": "[UNK]"}
    return {"vocab.txt": "\n".join(lines).encode(), **packed(tokenizer_config__json=config, special_tokens_map__json={"mask_token": "[MASK]"})}


def sentencepiece_folder(draw):
    kind = draw.choice((UNIGRAM, BPE, WORD, CHAR))
    more = BYTES if draw.random() < 0.5 else []
    pieces = [*LETTERS, *more, ("<tool>", 0.0, USER_DEFINED), ("é", -3.0, NORMAL)]
    switches = {name: draw.random() < 0.5 for name in ("suffix", "dummy", "squeeze", "escape")}
    data = model(pieces, kind, bool(more), unk_surface=draw.choice((None, "⁇")), **switches)
    return {"tokenizer.model": data, **packed(tokenizer_config__json={**CONFIG, "added_tokens_decoder": {}})}


def tiktoken_folder(draw):
    tokens = [bytes([b]) for b in range(256)] + [b"lo", b"low", b" low", b"er", b"\xe6\x97", b"\xe6\x97\xa5"]
    ranks = b"".join(base64.b64encode(token) + b" %d\n" % i for i, token in enumerate(tokens))
    config = {**CONFIG, "added_tokens_decoder": {"300": {"content": "<|end|>"}}}
    return {"small.tiktoken": ranks, **packed(tokenizer_config__json=config)}


def renumbered_folder(draw):
    name = draw.choice(list(FILES))
    files = {file: content if isinstance(content, bytes) else json.dumps(content).encode() for file, content in FILES[name].items()}
    config = {"tokenizer_class": name, "source_lang": "en", "src_lang": "en_XX", "offset": 103}
    added = {"<new>": 60} if draw.random() < 0.2 else {}
    return {**files, **packed(tokenizer_config__json=config, special_tokens_map__json={}, added_tokens__json=added)}


def llama_metadata():
    return metadata("llama", LLAMA, add_bos_token=True, bos_token_id=1, eos_token_id=2, unknown_token_id=0, add_space_prefix=True)


def gpt2_metadata():
    return metadata("gpt2", GPT2, merges=MERGES, pre="llama-bpe", bos_token_id=3, eos_token_id=258, add_bos_token=True)


def gemma4_metadata():
    rows = [*LLAMA, *ALPHABET[:60]]
    rows = list({row[0]: row for row in rows}.values())
    return metadata("gemma4", rows, merges=[], bos_token_id=1)


def bert_metadata():
    rows = [("[UNK]", 0.0, 3), ("[CLS]", 0.0, 3), ("[SEP]", 0.0, 3), *((t, 0.0, 1) for t in ("▁a", "a", "▁e", "b", "▁,", "▁漢"))]
    return metadata("bert", rows, bos_token_id=1, seperator_token_id=2, unknown_token_id=0, token_type_count=2)


def t5_metadata():
    rows = [("<pad>", 0.0, 3), ("</s>", 0.0, 3), ("<unk>", 0.0, 2), ("▁", -2.0, 1), ("▁a", -1.0, 1), ("a", -3.0, 1), ("<x>", 0.0, 4)]
    charsmap = np.frombuffer(struct.pack("<I", 8) + bytes(8) + b"abc\0", np.uint8)
    return metadata("t5", rows, remove_extra_whitespaces=True, add_space_prefix=True, precompiled_charsmap=charsmap, eos_token_id=1)


GGUF = [llama_metadata, gpt2_metadata, gemma4_metadata, bert_metadata, t5_metadata]


def gguf_folder(draw):
    values = draw.choice(GGUF)()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        write_gguf(path, {}, values)
        return {"model.gguf": path.read_bytes()}


FOLDERS = {
    "tokenizer.json": json_folder, "vocab.json": gpt2_folder, "vocab.txt": bert_folder, "sentencepiece": sentencepiece_folder,
    "tiktoken": tiktoken_folder, "renumbered": renumbered_folder, "gguf": gguf_folder,
}  # fmt: skip
