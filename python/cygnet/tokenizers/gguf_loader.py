"""Tokenizers from the vocabulary in GGUF metadata, of the kinds gpt2, llama, bert, t5, rwkv, gemma4 and whitespace, as llama.cpp reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cygnet.errors import FormatError, TokenizerError
from cygnet.tokenizers.added_tokens import AddedToken
from cygnet.tokenizers.bert_words import BertWords
from cygnet.tokenizers.byte_alphabet import BYTE_TOKENS
from cygnet.tokenizers.expressions import Expression
from cygnet.tokenizers.gguf_split import WHOLE_LINES, known_names, split_of
from cygnet.tokenizers.gguf_stages import GgufBPE, GgufDecoder, LineBPE, Words
from cygnet.tokenizers.gguf_vocab import CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, GgufVocab
from cygnet.tokenizers.normalizers import Replace
from cygnet.tokenizers.postprocessors import BertProcessing, Sequence, Special, TemplateProcessing
from cygnet.tokenizers.pretokenizers import Sequence as PreTokenizers
from cygnet.tokenizers.tokenizer import Tokenizer

SETTING_NAMES = {
    "bos": "bos_token",
    "eos": "eos_token",
    "padding": "pad_token",
    "unknown": "unk_token",
    "seperator": "sep_token",
    "mask": "mask_token",
}


def load(path: Path) -> Tokenizer:
    """Tokenizer from a GGUF file.

    Raises
    ------
    TokenizerError
        Where the vocabulary is damaged or of an unknown kind; names the key.
    """
    from cygnet.formats.gguf import read_gguf

    try:
        with read_gguf(path) as file:
            return from_metadata(file.metadata, str(path))
    except FormatError as error:
        raise TokenizerError(str(error)) from None


def from_metadata(metadata: Mapping[str, Any], where: str = "GGUF metadata") -> Tokenizer:
    """Tokenizer from the metadata of a GGUF file.

    Parameters
    ----------
    metadata : mapping of str to value
        The file's keys; arrays as lists or NumPy arrays.
    where : str
        The file, for error messages.
    """
    vocab = GgufVocab(metadata, where)
    stages = {
        "gpt2": bpe_stages,
        "whitespace": whitespace_stages,
        "gemma4": bpe_stages,
        "llama": llama_stages,
        "bert": bert_stages,
        "t5": t5_stages,
        "rwkv": rwkv_stages,
    }[vocab.kind](vocab)
    return Tokenizer(added_tokens=added_tokens(vocab), settings=settings(vocab), **stages)


def settings(vocab: GgufVocab) -> dict[str, Any]:
    """Spellings of the marks, the chat template and the ids that end a generation."""
    out: dict[str, Any] = {name: vocab.tokens[vocab.special_ids[key]] for key, name in SETTING_NAMES.items() if key in vocab.special_ids}
    template = vocab.metadata.get("tokenizer.chat_template")
    if isinstance(template, str):
        out["chat_template"] = template
    out["end_of_generation_ids"] = vocab.end_of_generation
    return out


def added_tokens(vocab: GgufVocab) -> list[AddedToken]:
    """Control, unknown and user-defined tokens; the first two are special. Which take the spaces beside them goes by the model's name."""
    name = str(vocab.metadata.get("general.name", "")).lower()
    architecture = str(vocab.metadata.get("general.architecture", ""))
    left: set[str] = set()
    right: set[str] = set()
    tokens = [(i, vocab.tokens[i]) for i in vocab.of_type(UNKNOWN, CONTROL, USER_DEFINED)]
    jina = any(n in vocab.pre for n in ("jina-v2-de", "jina-v2-es", "jina-v2-code"))
    if jina or any(n in architecture for n in ("nomic-bert-moe", "jina-bert-v3")):
        left = {"<mask>"}
    elif "phi-3" in name or "phi3" in name:
        right = {token for _, token in tokens} - {"<unk>", "<s>", "<|endoftext|>"} | {"</s>"}
    elif "modern-bert" in name:
        left = {"[MASK]"}
    special = {i for i, _ in tokens} - set(vocab.of_type(USER_DEFINED))
    return [AddedToken(t, i, lstrip=t in left, rstrip=t in right, special=i in special, ascii_spaces=True, by_length=True) for i, t in tokens]


def template(vocab: GgufVocab, add_bos: bool, add_eos: bool, always_bos: bool = False) -> TemplateProcessing:
    """BOS and EOS around the text, as the file says or else as given."""
    marks: dict[str, list] = {"bos": [], "eos": []}
    for name, default in (("bos", add_bos), ("eos", add_eos)):
        if vocab.get(f"add_{name}_token", bool, default) or (name == "bos" and always_bos):
            if name not in vocab.special_ids:
                raise TokenizerError(f"{vocab.where}: tokenizer.ggml.add_{name}_token is on, but {name}_token_id is not set")
            marks[name] = [Special((vocab.special_ids[name],), 0)]
    single = [*marks["bos"], Sequence(0, 0), *marks["eos"]]
    return TemplateProcessing(single, [*single, Sequence(1, 0), *marks["eos"]])


def bpe_stages(vocab: GgufVocab) -> dict[str, Any]:
    name = vocab.pre or "default"
    if vocab.kind == "gemma4":
        name = "gemma4"
    split = split_of(name)
    if split is None:
        raise TokenizerError(f"{vocab.where}: unknown pre-tokenizer tokenizer.ggml.pre {name[:40]!r}; known are {', '.join(known_names())}")
    merges = vocab.merges([] if name == "kimi-k2" else None)
    kind = LineBPE if name in WHOLE_LINES else GgufBPE
    model = kind(vocab.ids, merges, ignore_merges=split.ignore_merges, byte_fallback=not split.byte_level, where=f"{vocab.where}: tokenizer.ggml")
    return {
        "model": model,
        "normalizer": Replace(Expression(" "), "▁") if split.escape_spaces else None,
        "pre_tokenizer": split.pre_tokenizer(),
        "post_processor": template(vocab, split.add_bos, False, always_bos=name in WHOLE_LINES),
        "decoder": GgufDecoder(
            vocab.ids, vocab.types, not split.escape_spaces, split.escape_spaces, add_space_prefix(vocab, False), split.clean_spaces
        ),
    }


def whitespace_stages(vocab: GgufVocab) -> dict[str, Any]:
    """BPE of what stands between white space; in lower case where the file does not say otherwise."""
    stages = bpe_stages(vocab)
    words = Words(vocab.get("normalizer.lowercase", bool, vocab.pre != "whitespace"))
    return {**stages, "pre_tokenizer": PreTokenizers([words, stages["pre_tokenizer"]])}


def add_space_prefix(vocab: GgufVocab, default: bool) -> bool:
    return vocab.get("add_space_prefix", bool, default)


def byte_ids(vocab: GgufVocab) -> list[int | None]:
    """Ids of the tokens <0x00> to <0xFF>, or of the ASCII characters themselves."""
    return [vocab.ids.get(token, vocab.ids.get(chr(byte)) if byte < 128 else None) for byte, token in enumerate(BYTE_TOKENS)]


# Each kind imports what only it needs: together it takes as long as reading a vocabulary.


def llama_stages(vocab: GgufVocab) -> dict[str, Any]:
    from cygnet._core._charsmap import Charsmap
    from cygnet._core._merges import MergeSegmenter
    from cygnet._core._sentencepiece import Rewriter
    from cygnet.tokenizers.sentencepiece import SentencePieceModel, SentencePieceNormalizer

    prefix = add_space_prefix(vocab, True)
    unknown = vocab.special_ids.get("unknown")
    segmenter = MergeSegmenter(vocab.tokens, range(len(vocab.tokens)), vocab.scores.tolist(), ((), ()), (), (), unknown, byte_ids(vocab))
    return {
        "model": SentencePieceModel(vocab.tokens, segmenter),
        "normalizer": SentencePieceNormalizer(Rewriter(Charsmap(b""), (), prefix, False, True, False)),
        "post_processor": template(vocab, True, False),
        "decoder": GgufDecoder(vocab.ids, vocab.types, False, True, prefix, False),
    }


def bert_stages(vocab: GgufVocab) -> dict[str, Any]:
    from cygnet.tokenizers.wordpiece import NO_LIMIT, WordPiece

    for name in ("bos", "seperator", "unknown"):
        if name not in vocab.special_ids:
            raise TokenizerError(f"{vocab.where}: tokenizer.ggml.{name}_token_id is not set")
    lowercase = vocab.get("normalizer.lowercase", bool, True)
    return {
        "model": WordPiece(vocab.ids, vocab.tokens[vocab.special_ids["unknown"]], "", NO_LIMIT),
        "pre_tokenizer": BertWords(lowercase, vocab.get("normalizer.strip_accents", bool, lowercase)),
        "post_processor": BertProcessing(vocab.special_ids["bos"], vocab.special_ids["seperator"]),
        "decoder": GgufDecoder(vocab.ids, vocab.types, False, True, add_space_prefix(vocab, False), True),
    }


def t5_stages(vocab: GgufVocab) -> dict[str, Any]:
    from cygnet._core._charsmap import Charsmap
    from cygnet._core._sentencepiece import Rewriter
    from cygnet._core._trie import Trie
    from cygnet._core._unigram import UnigramSegmenter
    from cygnet.tokenizers.sentencepiece import UNKNOWN_PENALTY, SentencePieceModel, SentencePieceNormalizer

    charsmap = vocab.array("precompiled_charsmap")
    if charsmap is not None and charsmap.dtype.kind not in "iu":
        raise TokenizerError(f"{vocab.where}: tokenizer.ggml.precompiled_charsmap must hold bytes")
    data = b"" if charsmap is None else charsmap.astype(np.uint8).tobytes()
    prefix = add_space_prefix(vocab, True)
    squeeze = vocab.get("remove_extra_whitespaces", bool, False)
    rewriter = Rewriter(
        Charsmap(data, f"{vocab.where}: tokenizer.ggml.precompiled_charsmap"),
        [vocab.tokens[i] for i in vocab.of_type(USER_DEFINED)],
        prefix, squeeze, True, False, word_by_word=True,
    )  # fmt: skip
    scores = vocab.scores.copy()
    normal = vocab.scores[vocab.of_type(NORMAL)]
    floor = (normal.min() if len(normal) else np.float32(0)) - np.float32(UNKNOWN_PENALTY)
    scores[vocab.of_type(USER_DEFINED)] = 0
    matched = vocab.of_type(NORMAL, USER_DEFINED, UNUSED)
    pieces = Trie([vocab.tokens[i] for i in matched], matched)
    segmenter = UnigramSegmenter(pieces, scores.astype(np.float64), float(floor), vocab.special_ids.get("unknown"))
    return {
        "model": SentencePieceModel(vocab.tokens, segmenter),
        "normalizer": SentencePieceNormalizer(rewriter),
        "post_processor": template(vocab, False, True),
        "decoder": GgufDecoder(vocab.ids, vocab.types, False, True, prefix, False),
    }


def rwkv_stages(vocab: GgufVocab) -> dict[str, Any]:
    """No marks are put around a text, whatever the file says of them."""
    from cygnet.tokenizers.gguf_rwkv import LongestBytes, RwkvDecoder

    return {"model": LongestBytes(vocab), "decoder": RwkvDecoder(vocab)}
