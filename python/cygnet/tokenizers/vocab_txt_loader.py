"""BERT's vocab.txt: one token a line, its number the id; the switches lie beside it in tokenizer_config.json."""

from __future__ import annotations

from pathlib import Path

from cygnet.errors import TokenizerError
from cygnet.files import read_text
from cygnet.tokenizers import decoders
from cygnet.tokenizers.added_tokens import AddedToken
from cygnet.tokenizers.json_fields import Fields
from cygnet.tokenizers.normalizers import BertNormalizer
from cygnet.tokenizers.postprocessors import BertProcessing
from cygnet.tokenizers.pretokenizers import BertPreTokenizer
from cygnet.tokenizers.settings import read_object, read_settings
from cygnet.tokenizers.tokenizer import Tokenizer
from cygnet.tokenizers.wordpiece import WordPiece

SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}


def load(path: Path) -> Tokenizer:
    """Tokenizer from a vocab.txt.

    Text is put between [CLS] and [SEP] where the vocabulary has both.

    Raises
    ------
    TokenizerError
        Where the file is not UTF-8 or has no unknown token, or a switch beside it is damaged.
    """
    vocab = read_vocab_txt(path)
    config = Fields(read_object(path.parent / "tokenizer_config.json"), str(path.parent / "tokenizer_config.json"))
    settings = {**SPECIAL, **read_settings(path.parent)}
    names = {name: settings[name] for name in SPECIAL if settings[name] in vocab}
    if "unk_token" not in names:
        unknown = f"the unknown token {settings['unk_token']!r} is not among its lines"
        raise TokenizerError(f"{path}: {unknown}; a vocab.txt has one token of the vocabulary a line")
    for name in SPECIAL.keys() - names.keys():
        del settings[name]
    cls, sep = (vocab.get(names.get(name)) for name in ("cls_token", "sep_token"))
    return Tokenizer(
        WordPiece(vocab, names["unk_token"]),
        normalizer=BertNormalizer(
            handle_chinese_chars=config.flag("tokenize_chinese_chars", True),
            strip_accents=config.flag("strip_accents", None),
            lowercase=config.flag("do_lower_case", True),
        ),
        pre_tokenizer=BertPreTokenizer(),
        post_processor=BertProcessing(cls, sep) if cls is not None and sep is not None else None,
        decoder=decoders.WordPiece(),
        added_tokens=[AddedToken(token, vocab[token], special=True) for token in dict.fromkeys(names.values())],
        settings=settings,
    )


def read_vocab_txt(path: Path) -> dict[str, int]:
    """Token to line number; of equal lines the last counts."""
    return {line: i for i, line in enumerate(read_text(path, TokenizerError).removesuffix("\n").split("\n"))}
