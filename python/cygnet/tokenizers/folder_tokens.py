"""The tokens that a model folder names beside its vocabulary, held against the ids that the vocabulary gives them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cygnet.errors import TokenizerError
from cygnet.tokenizers.added_tokens import AddedToken
from cygnet.tokenizers.json_fields import MAX_ID, Fields
from cygnet.tokenizers.postprocessors import Sequence, Special, TemplateProcessing
from cygnet.tokenizers.settings import TOKEN_NAMES, read_object, read_settings

ADVICE = "save tokenizer.json into the folder with the fast tokenizer of transformers"


class FolderTokens:
    """Ids, special tokens and settings of a folder.

    Parameters
    ----------
    folder : Path
    ids : dict of str to int
        The ids that the class gives to the tokens of its vocabulary.
    special : iterable of str
        Those of them that are special.
    names : dict
        Spelling of the named tokens ("eos_token" ...) where the folder has no other.

    Raises
    ------
    TokenizerError
        Where a file of the folder contradicts the ids, or names a token without saying its id.
    """

    def __init__(self, folder: Path, ids: dict[str, int], special: Iterable[str], names: dict[str, str]):
        self.folder = folder
        self.ids = dict(ids)
        self.added = {token: AddedToken(token, ids[token], special=True) for token in special}
        self.settings = {**{name: token for name, token in names.items() if token in ids}, **read_settings(folder)}
        places = {token_id: token for token, token_id in ids.items()}
        if len(places) < len(ids):
            raise TokenizerError(f"{folder}: a token is declared with the id of another; {ADVICE}")
        for token in declared(folder):
            if self.ids.setdefault(token.content, token.id) != token.id or places.setdefault(token.id, token.content) != token.content:
                raise TokenizerError(f"{folder}: token {token.content!r} is declared with id {token.id}, which is not its place; {ADVICE}")
            if token.content not in ids or token.special:
                self.added[token.content] = token
        named = [self.settings[name] for name in TOKEN_NAMES if name in self.settings]
        for token in (*named, *further(folder)):
            if token not in self.ids:
                raise TokenizerError(f"{folder}: the special token {token!r} has no id in the vocabulary; {ADVICE}")
            self.added.setdefault(token, AddedToken(token, self.ids[token], special=True))
        mask = self.settings.get("mask_token")
        if mask == "<mask>":
            self.added[mask] = AddedToken(mask, self.ids[mask], lstrip=True, special=True)

    def template(self, before: tuple[str, ...], between: tuple[str, ...], behind: tuple[str, ...], language: str | None = None) -> TemplateProcessing:
        """Named tokens around a text and between it and its pair; "language" stands for the mark of the source language."""
        wanted = {*before, *between, *behind}
        ids = {name: self.ids[token] for name, token in {**self.settings, "language": language}.items() if name in wanted}
        for name in sorted(wanted - ids.keys()):
            raise TokenizerError(f"{self.folder}: {name} is not set, and no token of the vocabulary is spelled like the usual one; {ADVICE}")

        def marks(names: tuple[str, ...]) -> list[Special]:
            return [Special(tuple(ids[name] for name in names), 0)] if names else []

        first, second = Sequence(0, 0), Sequence(1, 0)
        single = [*marks(before), first, *marks(behind)]
        return TemplateProcessing(single, [*marks(before), first, *marks(between), second, *marks(behind)])


def declared(folder: Path) -> list[AddedToken]:
    """The tokens to which added_tokens.json and tokenizer_config.json give ids."""
    simple = Fields(read_object(folder / "added_tokens.json"), str(folder / "added_tokens.json"))
    found = {token: AddedToken(token, simple.size(token)) for token in simple.value}
    config = Fields(read_object(folder / "tokenizer_config.json"), str(folder / "tokenizer_config.json"))
    found |= {token.content: token for token in declared_by_id(config)}
    return list(found.values())


def declared_by_id(config: Fields) -> list[AddedToken]:
    """The tokens of added_tokens_decoder in a tokenizer_config.json."""
    found = []
    where = f"{config.where}: added_tokens_decoder"
    for number, value in config.get("added_tokens_decoder", dict, {}).items():
        token = Fields(value, f"{where}[{number[:40]!r}]")
        if not (number.isascii() and number.isdecimal() and len(number) < 11 and int(number) <= MAX_ID):
            raise TokenizerError(f"{token.where} is no id from 0 to {MAX_ID}")
        flags = {name: token.flag(name, False) for name in ("single_word", "lstrip", "rstrip", "normalized", "special")}
        found.append(AddedToken(token.string("content"), int(number), **flags))
    return found


def further(folder: Path) -> list[str]:
    """The special tokens that the folder lists without a name."""
    out: list[str] = []
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        fields = Fields(read_object(folder / name), str(folder / name))
        for key in ("additional_special_tokens", "extra_special_tokens"):
            tokens = fields.get(key, (list, dict), [])
            for token in tokens.values() if isinstance(tokens, dict) else tokens:
                out.append(token_text(token, f"{fields.where}.{key}"))
    return list(dict.fromkeys(out))


def token_text(token: Any, where: str) -> str:
    """A token written as text, or as an object with its content."""
    return token if isinstance(token, str) else Fields(token, where).string("content")
