"""SentencePiece pieces numbered by a list of their own: Marian (vocab.json, or Marian's .yml) and M2M-100 (vocab.json)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cygnet.errors import TokenizerError
from cygnet.files import read_bytes
from cygnet.tokenizers import language_codes
from cygnet.tokenizers import sentencepiece_proto as proto
from cygnet.tokenizers.added_tokens import AddedToken, Leading
from cygnet.tokenizers.components import Normalizer, Piece, PreTokenizer
from cygnet.tokenizers.folder_tokens import ADVICE, FolderTokens, declared
from cygnet.tokenizers.json_fields import Fields, read_vocab
from cygnet.tokenizers.postprocessors import TemplateProcessing
from cygnet.tokenizers.rearranged import plain_decoder
from cygnet.tokenizers.sentencepiece import SentencePieceModel, SentencePieceNormalizer, segmenter
from cygnet.tokenizers.settings import read_object
from cygnet.tokenizers.tokenizer import Tokenizer
from cygnet.tokenizers.yaml_vocab import read_yaml_vocab

LANGUAGE_MARK = re.compile(r">>.*?<<", re.DOTALL)
MARIAN_NAMES = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
M2M_NAMES = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
M2M_LANGUAGES = {"m2m100": language_codes.M2M_100, "wmt21": language_codes.WMT_21}


class ListedPieces:
    """A SentencePiece model whose pieces are looked up in a vocabulary by their spelling.

    Parameters
    ----------
    pieces : SentencePieceModel
    ids : dict of str to int
    unk_id : int
        Id of the pieces that the vocabulary does not have.
    special : set of str
        Tokens of the vocabulary that no text is read as.
    """

    def __init__(self, pieces: SentencePieceModel, ids: dict[str, int], unk_id: int, special: set[str]):
        self.pieces = pieces
        self.ids = ids
        self.names = {token_id: token for token, token_id in ids.items()}
        self.vocab_size = len(ids)
        self.unk_id = unk_id
        self._readable = {token: token_id for token, token_id in ids.items() if token not in special}

    def tokenize(self, text: str) -> list[Piece]:
        """The pieces; a stretch that none covers is looked up as it is written, since the vocabulary may know more than the file."""
        unknown, names = self.pieces.unk_id, self.pieces.names
        found = [(text[start:end] if i == unknown else names[i], start, end) for i, start, end in self.pieces.tokenize(text)]
        return [(self._readable.get(piece, self.unk_id), start, end) for piece, start, end in found]

    def token_to_id(self, token: str) -> int | None:
        return self.ids.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        return self.names.get(token_id)

    def fast_lane(self, normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> None:
        return None


def load_marian(folder: Path, file: Path) -> Tokenizer:
    """Tokenizer of a Marian folder.

    source.spm cuts, vocab.json or a *vocab*.yml numbers, target.spm says how pieces are joined and cuts the texts of its `target`.
    Punctuation is left as it is: what the Moses scripts would make of it is the caller's business.
    """
    path = folder / "tokenizer_config.json"
    if Fields(read_object(path), str(path)).flag("separate_vocabs", False):
        raise TokenizerError(f"{path}.separate_vocabs is true: MarianTokenizer with two vocabularies is not supported")
    vocab = read_listed(list_of(folder))
    tokens = FolderTokens(folder, vocab, (), MARIAN_NAMES)
    source, target = Cut.read(file), Cut.read(folder / "target.spm")
    make = partial(assemble, joined=target, vocab=vocab, tokens=tokens, post_processor=tokens.template((), (), ("eos_token",)))
    make = partial(make, leading=partial(language_mark, vocab, tokens.ids[tokens.settings["unk_token"]]))
    return make(source, target=None if source.model == target.model else make(target))


def language_mark(ids: dict[str, int], unk_id: int, text: str) -> AddedToken | None:
    """The mark (>>fra<<) that a text begins with, unknown where the vocabulary does not have it; anything may stand in a mark but its end."""
    found = LANGUAGE_MARK.match(text)
    return AddedToken(found[0], ids.get(found[0], unk_id)) if found else None


def load_m2m(folder: Path, file: Path) -> Tokenizer:
    """Tokenizer of an M2M-100 folder; the marks of languages (__en__) are behind the vocabulary, or where the folder declares them."""
    path = folder / "tokenizer_config.json"
    config = Fields(read_object(path), str(path))
    vocab = read_listed(folder / "vocab.json")
    which = config.string("language_codes", "m2m100")
    if which not in M2M_LANGUAGES:
        raise TokenizerError(f"{path}.language_codes is {which!r}; known are {', '.join(M2M_LANGUAGES)}")
    marks = {token.content: token.id for token in declared(folder) if token.content.startswith("__") and token.content.endswith("__")}
    marks = marks or {f"__{code}__": len(vocab) + i for i, code in enumerate(M2M_LANGUAGES[which])}
    tokens = FolderTokens(folder, {**vocab, **marks}, marks, M2M_NAMES)
    language = f"__{config.string('src_lang', 'en')}__"
    if language not in marks:
        raise TokenizerError(f"{path}.src_lang is {language[2:-2]!r}; known are {', '.join(mark[2:-2] for mark in marks)}")
    cut = Cut.read(file)
    return assemble(cut, cut, vocab, tokens, tokens.template(("language",), (), ("eos_token",), language))


def list_of(folder: Path) -> Path:
    """The file that numbers the pieces of a Marian folder: vocab.json, else the one that Marian itself wrote."""
    found = yaml_lists(folder)
    if (folder / "vocab.json").is_file() or not found:
        return folder / "vocab.json"
    if len(found) > 1:
        raise TokenizerError(f"{folder} holds {' and '.join(path.name for path in found)}: a vocabulary for each language is not supported")
    return found[0]


def yaml_lists(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*vocab*") if path.suffix in (".yml", ".yaml") and path.is_file())


def read_listed(path: Path) -> dict[str, int]:
    """A vocabulary that has the marks no tokenizer of these classes can do without."""
    vocab = read_vocab(read_object(path), str(path)) if path.suffix == ".json" else read_yaml_vocab(path)
    for token in ("</s>", "<unk>"):
        if token not in vocab:
            raise TokenizerError(f"{path} is missing, or has no {token}; {ADVICE}")
    return vocab


@dataclass(frozen=True)
class Cut:
    """A SentencePiece model and the file that it comes from."""

    model: proto.ModelProto
    file: str

    @classmethod
    def read(cls, file: Path) -> Cut:
        try:
            return cls(proto.read_model_proto(read_bytes(file, TokenizerError), str(file)), str(file))
        except FileNotFoundError:
            raise TokenizerError(f"{file} is missing; put it there, or {ADVICE}") from None


def assemble(
    cut: Cut,
    joined: Cut,
    vocab: dict[str, int],
    tokens: FolderTokens,
    post_processor: TemplateProcessing,
    leading: Leading | None = None,
    target: Tokenizer | None = None,
) -> Tokenizer:
    """Tokenizer that cuts by one SentencePiece file and joins by another."""
    model = cut.model
    pieces = SentencePieceModel(model.pieces, segmenter(model, cut.file), *model.of_type(proto.UNKNOWN))
    return Tokenizer(
        ListedPieces(pieces, vocab, tokens.ids[tokens.settings["unk_token"]], {t.content for t in tokens.added.values() if t.special}),
        normalizer=SentencePieceNormalizer.from_model(model, cut.file),
        decoder=plain_decoder(joined.model, joined.file),
        post_processor=post_processor,
        added_tokens=tokens.added.values(),
        leading=leading,
        target=target,
        settings=tokens.settings,
    )
