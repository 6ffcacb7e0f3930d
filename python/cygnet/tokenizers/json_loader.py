"""tokenizer.json: reads the document and builds each stage it names; anything unknown raises and says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from cygnet._core._vocabulary import cut_large_parts
from cygnet.errors import TokenizerError
from cygnet.files import read_bytes
from cygnet.tokenizers import json_stages
from cygnet.tokenizers.added_tokens import AddedToken, id_for_new_token
from cygnet.tokenizers.components import Model, Normalizer
from cygnet.tokenizers.json_fields import Fields, values_of
from cygnet.tokenizers.tokenizer import Tokenizer
from cygnet.tokenizers.truncation import STRATEGIES, Padding, Truncation

# Each module has from_fields(Fields) -> Model.
MODELS = {"BPE": "bpe", "Unigram": "unigram", "WordLevel": "wordlevel", "WordPiece": "wordpiece"}


def load(path: Path) -> Tokenizer:
    """Tokenizer from a tokenizer.json file."""
    return tokenizer_from_text(read_bytes(path, TokenizerError), str(path))


def tokenizer_from_text(text: str | bytes, where: str = "tokenizer.json") -> Tokenizer:
    """Tokenizer from the text of a tokenizer.json.

    Raises
    ------
    TokenizerError
        Where the text is no JSON, or the document is damaged or names something unknown.
    """
    rest, parts = cut_large_parts(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    try:
        document = json.loads(rest)
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{where} is no valid JSON: {error}") from None
    model = document.get("model") if parts else None
    if isinstance(model, dict):
        model.update((name, part) for name, part in parts.items() if model.get(name) is True)
    return tokenizer_from_document(document, where)


def tokenizer_from_document(document: Any, where: str = "tokenizer.json") -> Tokenizer:
    """Tokenizer from the parsed content of a tokenizer.json.

    Raises
    ------
    TokenizerError
        Where the document is damaged or names something unknown.
    """
    with values_of(where):
        return _from_fields(Fields(document, where))


def _from_fields(fields: Fields) -> Tokenizer:
    document, where = fields.value, fields.where
    model = read_model(fields)
    added = read_added_tokens(fields, model)
    names = {t.id: t.content for t in added}

    def spell(token_id: int) -> str | None:
        return names.get(token_id) or model.id_to_token(token_id)

    return Tokenizer(
        model,
        normalizer=read_normalizer(fields),
        pre_tokenizer=json_stages.pre_tokenizer(document.get("pre_tokenizer"), f"{where}: pre_tokenizer"),
        post_processor=json_stages.post_processor(document.get("post_processor"), f"{where}: post_processor", spell),
        decoder=json_stages.decoder(document.get("decoder"), f"{where}: decoder"),
        added_tokens=added,
        truncation=read_truncation(fields),
        padding=read_padding(fields),
    )


def read_normalizer(fields: Fields) -> Normalizer | None:
    config = fields.get("normalizer", dict, None)
    if config is None:
        return None
    from cygnet.tokenizers.normalizers import from_config

    return from_config(config, f"{fields.where}: normalizer")


def read_model(fields: Fields) -> Model:
    model = Fields(fields.get("model", dict), f"{fields.where}: model")
    kind = model.string("type", None) or guess_kind(model)
    if kind not in MODELS:
        raise TokenizerError(f"{model.where}: unknown component {kind[:60]!r}; known are {', '.join(MODELS)}")
    build: Callable[[Fields], Model] = import_module(f"cygnet.tokenizers.{MODELS[kind]}").from_fields
    return build(model)


def guess_kind(model: Fields) -> str:
    """The kind of a model of an older file, which does not name it: told by the fields that only one kind has."""
    if "merges" in model.value:
        return "BPE"
    vocab = model.value.get("vocab")
    if isinstance(vocab, list) or (isinstance(vocab, bytes) and vocab.startswith(b"[")):
        return "Unigram"
    if "max_input_chars_per_word" in model.value or "continuing_subword_prefix" in model.value:
        return "WordPiece"
    if "unk_token" in model.value:
        return "WordLevel"
    raise TokenizerError(f"{model.where}.type is missing")


def read_added_tokens(fields: Fields, model: Model) -> list[AddedToken]:
    """Added tokens in the order of the file.

    A token that the model's vocabulary holds has the id from there; the others are numbered from the end of the vocabulary, as the
    format's own library does, whatever number the file claims.
    """
    taken: dict[str, int] = {}
    out: dict[str, AddedToken] = {}
    for item in fields.objects("added_tokens", []):
        content = item.string("content")
        item.size("id")
        if not content:
            continue
        taken[content] = id_for_new_token(content, model, taken)
        flags = {name: item.flag(name, False) for name in ("single_word", "lstrip", "rstrip", "special")}
        out[content] = AddedToken(content, taken[content], normalized=item.flag("normalized", not flags["special"]), **flags)
    return list(out.values())


def read_truncation(fields: Fields) -> Truncation | None:
    found = fields.get("truncation", dict, None)
    if found is None:
        return None
    rule = Fields(found, f"{fields.where}: truncation")
    names = dict(zip(("LongestFirst", "OnlyFirst", "OnlySecond"), STRATEGIES, strict=True))
    strategy = names[rule.choice("strategy", tuple(names), "LongestFirst")]
    left = rule.choice("direction", ("Left", "Right"), "Right") == "Left"
    return Truncation(rule.size("max_length"), strategy, rule.size("stride", 0), left)


def read_padding(fields: Fields) -> Padding | None:
    found = fields.get("padding", dict, None)
    if found is None:
        return None
    rule = Fields(found, f"{fields.where}: padding")
    strategy = rule.get("strategy", (str, dict))
    length = None
    if isinstance(strategy, dict):
        length = Fields(strategy, f"{rule.where}.strategy").size("Fixed")
    else:
        rule.choice("strategy", ("BatchLongest",))
    return Padding(
        length,
        rule.choice("direction", ("Left", "Right"), "Right") == "Left",
        rule.size("pad_to_multiple_of", None),
        rule.size("pad_id", 0),
        rule.size("pad_type_id", 0),
        rule.string("pad_token", "[PAD]"),
    )
