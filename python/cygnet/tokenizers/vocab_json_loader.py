"""GPT-2's pair of files: vocab.json, and merges.txt beside it; the switches lie in tokenizer_config.json."""

from __future__ import annotations

from pathlib import Path

from cygnet.errors import TokenizerError
from cygnet.files import read_text
from cygnet.tokenizers import decoders
from cygnet.tokenizers.added_tokens import AddedToken
from cygnet.tokenizers.bpe import BPE
from cygnet.tokenizers.json_fields import Fields, read_vocab
from cygnet.tokenizers.postprocessors import RobertaProcessing
from cygnet.tokenizers.pretokenizers import ByteLevel
from cygnet.tokenizers.settings import TOKEN_NAMES, read_object, read_settings
from cygnet.tokenizers.tokenizer import Tokenizer

# What marks the end of a text in GPT-2's vocabulary and its relatives', where no file beside it says otherwise.
END_OF_TEXT = "<|endoftext|>"
ROBERTA = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}


def load(path: Path) -> Tokenizer:
    """Tokenizer from a vocab.json with its merges.txt.

    The special tokens are those of tokenizer_config.json, else RoBERTa's where the vocabulary holds them, else <|endoftext|>.

    Raises
    ------
    TokenizerError
        Where merges.txt is missing, or either file is damaged.
    """
    vocab = read_vocab(read_object(path), str(path))
    merges = path.parent / "merges.txt"
    if not merges.is_file():
        raise TokenizerError(f"{path} needs merges.txt beside it")
    model = BPE(vocab, read_merges(merges), where=str(path))
    folder = path.parent
    config = Fields(read_object(folder / "tokenizer_config.json"), str(folder / "tokenizer_config.json"))
    roberta = all(token in vocab for token in ROBERTA.values())
    defaults = ROBERTA if roberta else dict.fromkeys(("bos_token", "eos_token", "unk_token"), END_OF_TEXT) if END_OF_TEXT in vocab else {}
    settings = {**defaults, **read_settings(folder)}
    prefix_space = config.flag("add_prefix_space", False)
    tokenizer_post = None
    if roberta:
        tokenizer_post = RobertaProcessing(model.id_to_token, vocab["<s>"], vocab["</s>"], True, prefix_space)
    return Tokenizer(
        model,
        pre_tokenizer=ByteLevel(prefix_space),
        post_processor=tokenizer_post,
        decoder=decoders.ByteLevel(),
        added_tokens=special_tokens(settings, vocab),
        settings=settings,
    )


def special_tokens(settings: dict, vocab: dict[str, int]) -> list[AddedToken]:
    """The named tokens that the vocabulary holds; a mask takes the space before it."""
    names = {settings[name]: name for name in TOKEN_NAMES if settings.get(name) in vocab}
    return [AddedToken(token, vocab[token], lstrip=name == "mask_token", special=True) for token, name in names.items()]


def read_merges(path: Path) -> list[str]:
    """The lines of a merges.txt without its version line."""
    return [line for line in read_text(path, TokenizerError).split("\n") if line.strip() and not line.startswith("#version")]
