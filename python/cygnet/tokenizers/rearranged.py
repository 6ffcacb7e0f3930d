"""SentencePiece vocabularies in another order than their file's: fairseq's (XLM-R, CamemBERT, mBART) and that of Pegasus.

They put tokens of their own before and behind the pieces. The pieces get their new places, and the rest goes on as for any SentencePiece model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cygnet.errors import TokenizerError
from cygnet.files import read_bytes
from cygnet.tokenizers import language_codes
from cygnet.tokenizers import sentencepiece_proto as proto
from cygnet.tokenizers.folder_tokens import ADVICE, FolderTokens
from cygnet.tokenizers.json_fields import Fields
from cygnet.tokenizers.sentencepiece import SentencePieceDecoder, SentencePieceModel, SentencePieceNormalizer, segmenter
from cygnet.tokenizers.settings import read_object
from cygnet.tokenizers.tokenizer import Tokenizer

FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")
CAMEMBERT = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED")
NAMES = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
NAMES["mask_token"] = "<mask>"
MOST_MARKS = 10_000
PEGASUS_NAMES = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask_2>"}


@dataclass(frozen=True)
class Layout:
    """Where a class puts the pieces of its file, and what it puts around a text.

    Attributes
    ----------
    start : sequence of str
        Tokens before the pieces.
    left_out : int
        How many pieces at the beginning of the file have no place of their own.
    languages : sequence of str
        Marks of languages behind the pieces.
    end : sequence of str
        Tokens behind these.
    around : three tuples of str
        Named tokens before a text, between it and its pair, and behind.
    """

    start: Sequence[str]
    left_out: int
    languages: Sequence[str] = ()
    end: Sequence[str] = ("<mask>",)
    around: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] = (("cls_token",), ("sep_token", "sep_token"), ("sep_token",))
    names: tuple[tuple[str, str], ...] = tuple(NAMES.items())


XLM_R = Layout(FAIRSEQ, 3)
CAMEMBERT_LAYOUT = Layout(CAMEMBERT, 1)
MBART = Layout(FAIRSEQ, 3, language_codes.MBART, around=((), (), ("eos_token", "language")))
MBART_50 = Layout(FAIRSEQ, 3, language_codes.MBART_50, around=(("language",), (), ("eos_token",)))


def pegasus(folder: Path) -> Layout:
    """Pegasus' layout: `offset` tokens more than pieces, most of them from its training only."""
    path = folder / "tokenizer_config.json"
    offset = Fields(read_object(path), str(path)).size("offset", 103)
    if offset > MOST_MARKS:
        raise TokenizerError(f"{path}.offset is {offset}; more than {MOST_MARKS} tokens before the pieces are in no Pegasus vocabulary")
    start = ("<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{i}>" for i in range(2, offset))) if offset else ()
    if offset == 1:
        raise TokenizerError(f"{path}.offset is 1; {ADVICE}")
    return Layout(start, 2 if offset else 0, end=(), around=((), (), ("eos_token",)), names=tuple(PEGASUS_NAMES.items()))


def load_pegasus(folder: Path, file: Path) -> Tokenizer:
    """Tokenizer of a Pegasus folder."""
    return load(folder, file, pegasus(folder))


def load(folder: Path, file: Path, layout: Layout) -> Tokenizer:
    """Tokenizer of a folder from its SentencePiece file and the layout of its class."""
    model = arranged(proto.read_model_proto(read_bytes(file, TokenizerError), str(file)), layout, str(file))
    pieces = SentencePieceModel(model.pieces, segmenter(model, str(file)), *model.of_type(proto.UNKNOWN))
    special = dict.fromkeys([*layout.start, *layout.languages, *layout.end])
    tokens = FolderTokens(folder, pieces.ids, special, dict(layout.names))
    return Tokenizer(
        pieces,
        normalizer=SentencePieceNormalizer.from_model(model, str(file)),
        decoder=plain_decoder(model, str(file)),
        post_processor=tokens.template(*layout.around, source_language(folder, layout)),
        added_tokens=tokens.added.values(),
        settings=tokens.settings,
    )


def arranged(model: proto.ModelProto, layout: Layout, where: str) -> proto.ModelProto:
    """The model with its pieces where the layout has them."""
    gone = model.types[: layout.left_out]
    if len(gone) < layout.left_out or proto.NORMAL in gone:
        raise TokenizerError(f"{where}: the first {layout.left_out} pieces are not all marks, as the folder's tokenizer class has them; {ADVICE}")

    def types(tokens: Sequence[str]) -> bytes:
        return bytes([proto.UNKNOWN if token == "<unk>" and proto.UNKNOWN in gone else proto.CONTROL for token in tokens])

    behind = [*layout.languages, *layout.end]
    return replace(
        model,
        pieces=[*layout.start, *model.pieces[layout.left_out :], *behind],
        scores=[0.0] * len(layout.start) + model.scores[layout.left_out :] + [0.0] * len(behind),
        types=types(layout.start) + model.types[layout.left_out :] + types(behind),
    )


def plain_decoder(model: proto.ModelProto, where: str) -> SentencePieceDecoder:
    """The decoder of a model, showing the marks that it is given: these are special tokens, which a caller leaves out or wants."""
    decoder = SentencePieceDecoder.from_model(model, where)
    decoder.invisible = set()
    decoder.unknown_surface = decoder.unknown
    return decoder


def source_language(folder: Path, layout: Layout) -> str | None:
    """Mark of the language that texts are in, as the folder says; English where it does not."""
    if not layout.languages:
        return None
    path = folder / "tokenizer_config.json"
    language = Fields(read_object(path), str(path)).string("src_lang", "en_XX")
    if language not in layout.languages:
        raise TokenizerError(f"{path}.src_lang is {language!r}; known are {', '.join(layout.languages)}")
    return language
