"""tokenizer.json: pre-tokenizers, post-processors and decoders from their objects in the document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cygnet.errors import TokenizerError
from cygnet.tokenizers import decoders, postprocessors, pretokenizers
from cygnet.tokenizers.json_fields import MAX_ID, Fields
from cygnet.tokenizers.splitting import BEHAVIOURS

Spell = Callable[[int], str | None]
MAX_NESTING = 64


def build(kinds: dict[str, Callable], value: Any, where: str, *context: Any) -> Any:
    """The component that an object names, or None for null."""
    if value is None:
        return None
    if where.count(".") > MAX_NESTING:
        raise TokenizerError(f"{where[:80]}... is nested too deep")
    fields = Fields(value, where)
    kind = fields.string("type")
    if kind not in kinds:
        raise TokenizerError(f"{where}: unknown component {kind[:60]!r}; known are {', '.join(sorted(kinds))}")
    return kinds[kind](fields, *context)


def children(kinds: dict[str, Callable], fields: Fields, name: str, *context: Any) -> list[Any]:
    """The components of a Sequence."""
    return [build(kinds, item.value, item.where, *context) for item in fields.objects(name)]


# Pre-tokenizers


def pre_tokenizer(value: Any, where: str):
    return build(PRE_TOKENIZERS, value, where)


def _byte_level(fields: Fields):
    fields.flag("trim_offsets", True)
    return pretokenizers.ByteLevel(fields.flag("add_prefix_space", True), fields.flag("use_regex", True))


def _prepend_scheme(fields: Fields) -> str:
    """always, first or never; the older add_prefix_space is read where prepend_scheme is absent."""
    older = fields.flag("add_prefix_space", True)
    scheme = fields.choice("prepend_scheme", ("always", "first", "never"), "always" if older else "never")
    if not older and scheme != "never":
        raise TokenizerError(f"{fields.where}: add_prefix_space false and prepend_scheme {scheme!r} contradict each other")
    return scheme


def _metaspace(fields: Fields):
    return pretokenizers.Metaspace(fields.char("replacement"), _prepend_scheme(fields), fields.flag("split", True))


def _split(fields: Fields):
    pattern = fields.pattern()
    behaviour, invert = fields.choice("behavior", BEHAVIOURS), fields.flag("invert", False)
    if isinstance(pattern, str):
        return pretokenizers.literal(pattern, behaviour, invert)
    return pretokenizers.Split(pattern, behaviour, invert, fields.value["pattern"].get("Regex"))


def _fixed_length(fields: Fields):
    length = fields.size("length", 5)
    if not length:
        raise TokenizerError(f"{fields.where}.length must be at least 1")
    return pretokenizers.FixedLength(length)


PRE_TOKENIZERS = {
    "BertPreTokenizer": lambda f: pretokenizers.BertPreTokenizer(),
    "ByteLevel": _byte_level,
    "CharDelimiterSplit": lambda f: pretokenizers.char_delimiter(f.char("delimiter")),
    "Digits": lambda f: pretokenizers.Digits(f.flag("individual_digits", False)),
    "FixedLength": _fixed_length,
    "Metaspace": _metaspace,
    "Punctuation": lambda f: pretokenizers.punctuation(f.choice("behavior", BEHAVIOURS, "Isolated")),
    "Sequence": lambda f: pretokenizers.Sequence(children(PRE_TOKENIZERS, f, "pretokenizers")),
    "Split": _split,
    "UnicodeScripts": lambda f: pretokenizers.UnicodeScripts(),
    "Whitespace": lambda f: pretokenizers.whitespace_words(),
    "WhitespaceSplit": lambda f: pretokenizers.whitespace_split(),
}


# Post-processors


def post_processor(value: Any, where: str, spell: Spell):
    return build(POST_PROCESSORS, value, where, spell)


def _token_and_id(fields: Fields, name: str) -> tuple[str, int]:
    pair = fields.get(name, list)
    if len(pair) != 2 or not isinstance(pair[0], str) or type(pair[1]) is not int or pair[1] < 0:
        raise TokenizerError(f"{fields.where}.{name} must be a token and its id")
    return pair[0], pair[1]


def _as_spelled(processor: postprocessors.Templated, *marks: tuple[str, int]) -> postprocessors.Templated:
    """The post-processor with its special tokens spelled as its object in the document spells them."""
    names = {token_id: (token,) for token, token_id in marks}
    for form in ("single", "pair"):
        items = [replace(item, tokens=names[item.ids[0]]) if isinstance(item, postprocessors.Special) else item for item in getattr(processor, form)]
        setattr(processor, form, items)
    return processor


def _bert(fields: Fields, spell: Spell):
    cls, sep = _token_and_id(fields, "cls"), _token_and_id(fields, "sep")
    return _as_spelled(postprocessors.BertProcessing(cls[1], sep[1]), cls, sep)


def _template(fields: Fields, name: str, special: dict[str, postprocessors.Special], sequences: int) -> postprocessors.Template:
    items: postprocessors.Template = []
    for item in fields.objects(name):
        if "Sequence" in item.value:
            inner = Fields(item.value["Sequence"], f"{item.where}.Sequence")
            index = ("A", "B").index(inner.choice("id", ("A", "B")))
            if index >= sequences:
                raise TokenizerError(f"{inner.where}.id: the template of a single text has no sequence B")
            items.append(postprocessors.Sequence(index, inner.size("type_id"), first_window=True))
            continue
        inner = Fields(item.get("SpecialToken", dict), f"{item.where}.SpecialToken")
        token = inner.string("id")
        if token not in special:
            raise TokenizerError(f"{inner.where}.id {token[:40]!r} is not among {fields.where}.special_tokens")
        items.append(replace(special[token], type_id=inner.size("type_id")))
    return items


def _template_processing(fields: Fields, spell: Spell):
    special: dict[str, postprocessors.Special] = {}
    for token, value in fields.get("special_tokens", dict).items():
        inner = Fields(value, f"{fields.where}.special_tokens[{token[:40]!r}]")
        ids = inner.get("ids", list)
        if not all(type(i) is int and 0 <= i <= MAX_ID for i in ids):
            raise TokenizerError(f"{inner.where}.ids must be a list of ids from 0 to {MAX_ID}")
        tokens = inner.get("tokens", list, [spell(i) or "" for i in ids])
        if len(tokens) != len(ids) or not all(isinstance(text, str) for text in tokens):
            raise TokenizerError(f"{inner.where}.tokens must be {len(ids)} texts, as many as there are ids")
        special[token] = postprocessors.Special(tuple(ids), None, tuple(tokens))
    return postprocessors.TemplateProcessing(_template(fields, "single", special, 1), _template(fields, "pair", special, 2))


def _roberta(fields: Fields, spell: Spell):
    cls, sep = _token_and_id(fields, "cls"), _token_and_id(fields, "sep")
    trim, prefix_space = fields.flag("trim_offsets", True), fields.flag("add_prefix_space", True)
    return _as_spelled(postprocessors.RobertaProcessing(spell, cls[1], sep[1], trim, prefix_space), cls, sep)


POST_PROCESSORS = {
    "BertProcessing": _bert,
    "ByteLevel": lambda f, spell: postprocessors.ByteLevel(spell, f.flag("trim_offsets", True), f.flag("add_prefix_space", True)),
    "RobertaProcessing": _roberta,
    "Sequence": lambda f, spell: postprocessors.Chain(children(POST_PROCESSORS, f, "processors", spell)),
    "TemplateProcessing": _template_processing,
}


# Decoders


def decoder(value: Any, where: str):
    return build(DECODERS, value, where)


def _ctc(fields: Fields):
    return decoders.CTC(fields.string("pad_token", "<pad>"), fields.string("word_delimiter_token", "|"), fields.flag("cleanup", True))


DECODERS = {
    "BPEDecoder": lambda f: decoders.BPEDecoder(f.string("suffix", "</w>")),
    "ByteFallback": lambda f: decoders.ByteFallback(),
    "ByteLevel": lambda f: decoders.ByteLevel(),
    "CTC": _ctc,
    "Fuse": lambda f: decoders.Fuse(),
    "Metaspace": lambda f: decoders.Metaspace(f.char("replacement"), _prepend_scheme(f)),
    "Replace": lambda f: decoders.Replace(f.pattern(), f.string("content")),
    "Sequence": lambda f: decoders.Sequence(children(DECODERS, f, "decoders")),
    "Strip": lambda f: decoders.Strip(f.char("content"), f.size("start"), f.size("stop")),
    "WordPiece": lambda f: decoders.WordPiece(f.string("prefix", "##"), f.flag("cleanup", True)),
}
