"""Which loader a file or folder wants, told by its content."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from cygnet.errors import TokenizerError
from cygnet.files import read_bytes
from cygnet.tokenizers.json_fields import values_of
from cygnet.tokenizers.tokenizer import Tokenizer

# In a folder, the first of these that is there; then any file with one of the endings.
NAMES = ("tokenizer.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.json", "vocab.txt", "source.spm")
ENDINGS = (".gguf", ".model", ".spm", ".tiktoken")

# A JSON object whose first value is a number; a line of base64 and a rank; a protobuf whose first field is a piece with a text.
VOCAB_JSON = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*-?\d')
TIKTOKEN_RANKS = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d+\s")
SENTENCEPIECE = re.compile(rb"\x0a.\x0a", re.DOTALL)


def load_file(path: Path) -> Tokenizer:
    """Tokenizer from a file, or from the tokenizer file of a folder."""
    if path.is_dir():
        folder, path = path, tokenizer_file(path)
        if may_be_renumbered(path):
            from cygnet.tokenizers.renumbered import class_of, load

            name = class_of(folder)
            if name is not None:
                with values_of(str(path)):
                    return load(folder, name)
    try:
        head = read_bytes(path, TokenizerError, 4096)
    except FileNotFoundError:
        raise TokenizerError(f"{path} cannot be read: there is no such file") from None
    module, function = choose(path, head)
    with values_of(str(path)):
        return getattr(import_module(f"cygnet.tokenizers.{module}"), function)(path)


def tokenizer_file(folder: Path) -> Path:
    """The tokenizer file of a folder."""
    for name in NAMES:
        if (folder / name).is_file():
            return folder / name
    for ending in ENDINGS:
        found = sorted(path for path in folder.glob(f"*{ending}") if path.is_file())
        if found:
            return found[0]
    raise TokenizerError(f"{folder} holds no tokenizer file: looked for {', '.join(NAMES)} and *{', *'.join(ENDINGS)}")


def may_be_renumbered(path: Path) -> bool:
    """Whether a folder's tokenizer class may have ids other than this file gives: one of pieces, or a vocab.json without merges."""
    return path.suffix in (".model", ".spm") or (path.name == "vocab.json" and not (path.parent / "merges.txt").is_file())


def choose(path: Path, head: bytes) -> tuple[str, str]:
    """Module and function that read a file, by its first bytes."""
    if head.startswith(b"GGUF"):
        return "gguf_loader", "load"
    if VOCAB_JSON.match(head):
        return "vocab_json_loader", "load"
    if head.lstrip().startswith(b"{") or path.suffix == ".json":
        return "json_loader", "load"
    if TIKTOKEN_RANKS.match(head):
        return "tiktoken_loader", "load"
    if SENTENCEPIECE.match(head):
        return "sentencepiece_loader", "load"
    if path.suffix == ".txt":
        return "vocab_txt_loader", "load"
    raise TokenizerError(f"{path} is of no known kind of tokenizer file")


def load_pretrained(source: Path) -> Tokenizer:
    """Tokenizer of a model folder or file, with the settings that lie beside it."""
    from cygnet.tokenizers.settings import read_settings

    tokenizer = load_file(source)
    tokenizer.settings.update(read_settings(source if source.is_dir() else source.parent))
    return tokenizer
