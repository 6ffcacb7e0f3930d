"""The stages of a SentencePiece model (Kudo and Richardson 2018): its normalizer, its four kinds of model and its decoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cygnet._core._charsmap import Charsmap
from cygnet._core._merges import MergeSegmenter
from cygnet._core._segmenter import Segmenter
from cygnet._core._sentencepiece import CharacterSegmenter, Rewriter, SentencePieceLane, WordSegmenter
from cygnet._core._trie import Trie
from cygnet._core._unigram import UnigramSegmenter
from cygnet._core._unigram_words import UnigramWordsLane
from cygnet.errors import TokenizerError
from cygnet.tokenizers import sentencepiece_proto as proto
from cygnet.tokenizers.aligned import AlignedText
from cygnet.tokenizers.byte_alphabet import BYTE_TOKENS
from cygnet.tokenizers.components import Normalizer, Piece, PreTokenizer
from cygnet.tokenizers.decoder_base import DecoderBase, Stage
from cygnet.tokenizers.decoders import BYTE_TOKEN

SPACE_SIGN = "▁"
UNKNOWN_PENALTY = 10.0
# A user-defined piece scores this much below its length times the best score, so that it always wins.
USER_DEFINED_MARGIN = 0.1


class SentencePieceNormalizer:
    """Character map, white space rules and the dummy space of a NormalizerSpec."""

    def __init__(self, rewriter: Rewriter):
        self.rewriter = rewriter

    @classmethod
    def from_model(cls, model: proto.ModelProto, where: str) -> SentencePieceNormalizer:
        kept = [model.pieces[i] for i in model.of_type(proto.USER_DEFINED)]
        return cls.from_spec(model.normalizer, kept, model.trainer["treat_whitespace_as_suffix"], f"{where}: normalizer_spec")

    @classmethod
    def from_spec(cls, spec: dict, kept: Sequence[str], suffix: bool, where: str) -> SentencePieceNormalizer:
        charsmap = Charsmap(spec["precompiled_charsmap"], f"{where}.precompiled_charsmap")
        return cls(Rewriter(charsmap, kept, spec["add_dummy_prefix"], spec["remove_extra_whitespaces"], spec["escape_whitespaces"], suffix))

    def normalize(self, text: AlignedText) -> AlignedText:
        result, ranges = self.rewriter.normalize(text.text)
        return AlignedText(result, [text.original(start, end) for start, end in ranges])


class SentencePieceModel:
    """Pieces of a SentencePiece model of any kind.

    Parameters
    ----------
    pieces : sequence of str
        Text of each id.
    segmenter : Segmenter
    unk_id : int, optional
        Id of stretches that an encoding's tokens spell as the text does.
    """

    def __init__(self, pieces: Sequence[str], segmenter: Segmenter, unk_id: int | None = None):
        self.names = list(pieces)
        self.ids = {piece: i for i, piece in enumerate(self.names)}
        self.vocab_size = len(self.names)
        self.segmenter = segmenter
        self.segmenter.last_byte_has_all = True
        self.unk_id = unk_id

    def tokenize(self, text: str) -> list[Piece]:
        return self.segmenter.pieces(text)

    def token_to_id(self, token: str) -> int | None:
        return self.ids.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        return self.names[token_id] if 0 <= token_id < len(self.names) else None

    def fast_lane(self, normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> SentencePieceLane | None:
        if type(normalizer) is not SentencePieceNormalizer or pre_tokenizer is not None:
            return None
        if type(self.segmenter) is UnigramSegmenter and self.segmenter.words_apart:
            return UnigramWordsLane(normalizer.rewriter, self.segmenter)
        return SentencePieceLane(normalizer.rewriter, self.segmenter)


def segmenter(model: proto.ModelProto, where: str) -> Segmenter:
    """The segmenter of a model.

    Raises
    ------
    TokenizerError
        Where the kind is unknown, or the pieces contradict each other.
    """
    check(model, where)
    unknown = model.of_type(proto.UNKNOWN)[0]
    byte_ids = None
    if model.trainer["byte_fallback"]:
        by_name = {model.pieces[i]: i for i in model.of_type(proto.BYTE)}
        byte_ids = [by_name[token] for token in BYTE_TOKENS]
    kind = model.trainer["model_type"]
    names = model.pieces
    matched = model.of_type(proto.NORMAL, proto.USER_DEFINED, proto.UNUSED)
    reserved = model.of_type(proto.CONTROL, proto.UNKNOWN, proto.BYTE)
    frozen = [names[i] for i in model.of_type(proto.USER_DEFINED)]
    if kind == proto.UNIGRAM:
        return unigram_segmenter(model, unknown, byte_ids)
    if kind == proto.BPE:
        whole = [names[i] for i in reserved], reserved
        unused = model.of_type(proto.UNUSED)
        return MergeSegmenter([names[i] for i in matched], matched, model.scores, whole, frozen, unused, unknown, byte_ids)
    if kind == proto.CHAR:
        return CharacterSegmenter(names, range(len(names)), frozen, unknown, byte_ids)
    if kind == proto.WORD:
        return WordSegmenter(names, range(len(names)), unknown, byte_ids)
    raise TokenizerError(f"{where}: trainer_spec.model_type is {kind}; known are 1 (unigram), 2 (bpe), 3 (word) and 4 (char)")


def unigram_segmenter(model: proto.ModelProto, unknown: int, byte_ids: list[int] | None) -> UnigramSegmenter:
    """Scores in single precision, summed as the library sums them; user-defined pieces score by their length in bytes."""
    scores = np.array(model.scores, np.float64)
    normal = scores[model.of_type(proto.NORMAL)].astype(np.float32)
    best, worst = (normal.max(), normal.min()) if len(normal) else (np.float32(0), np.float32(0))
    with np.errstate(over="ignore"):  # scores near the largest number
        for i in model.of_type(proto.USER_DEFINED):
            scores[i] = float(np.float32(len(model.pieces[i].encode())) * best) - USER_DEFINED_MARGIN
        floor = float(worst - np.float32(UNKNOWN_PENALTY))
    ids = model.of_type(proto.NORMAL, proto.USER_DEFINED)
    pieces = [model.pieces[i] for i in ids]
    return UnigramSegmenter(Trie(pieces, ids), scores, floor, unknown, byte_ids, single=True, words_apart=words_are_apart(pieces))


def words_are_apart(pieces: list[str]) -> bool:
    """Whether no piece reaches from one word into the next: each has a space sign at most in front, and the sign alone is one."""
    joined = "\0".join(pieces)
    told_apart = joined.count("\0") == len(pieces) - 1
    return told_apart and SPACE_SIGN in pieces and joined.count(SPACE_SIGN) == joined.startswith(SPACE_SIGN) + joined.count("\0" + SPACE_SIGN)


def check(model: proto.ModelProto, where: str) -> None:
    """The rules that the library checks when it loads a model."""
    if len(set(model.pieces)) < len(model.pieces):
        seen: dict[str, int] = {}
        i, piece = next((i, piece) for i, piece in enumerate(model.pieces) if seen.setdefault(piece, i) != i)
        raise TokenizerError(f"{where}: pieces[{i}] {piece[:40]!r} is already pieces[{seen[piece]}]")
    if len(model.of_type(proto.UNKNOWN)) != 1:
        raise TokenizerError(f"{where} has {len(model.of_type(proto.UNKNOWN))} pieces of type UNKNOWN; it must have one")
    byte_pieces = {model.pieces[i] for i in model.of_type(proto.BYTE)}
    if byte_pieces and not model.trainer["byte_fallback"]:
        raise TokenizerError(f"{where} has pieces of type BYTE, but trainer_spec.byte_fallback is off")
    if model.trainer["byte_fallback"] and byte_pieces != set(BYTE_TOKENS):
        raise TokenizerError(f"{where}: trainer_spec.byte_fallback needs the 256 BYTE pieces <0x00> to <0xFF>; it has {len(byte_pieces)} pieces")


class SentencePieceDecoder(DecoderBase):
    """Pieces back to text, as the library does it.

    Parameters
    ----------
    invisible : set of str
        Control pieces.
    byte_pieces : set of str
    unknown, unknown_surface : str
        The unknown piece, and what stands for it in the text.
    strip_first : bool
        The first piece loses its space sign.
    strip_all : bool
        So do the pieces after it, until one shows something.
    denormalizer : Rewriter, optional
        Applied to the whole text.
    """

    def __init__(
        self,
        invisible: set[str],
        byte_pieces: set[str],
        unknown: str,
        unknown_surface: str,
        strip_first: bool,
        strip_all: bool,
        denormalizer: Rewriter | None = None,
    ):
        self.invisible = invisible
        self.byte_pieces = byte_pieces
        self.unknown = unknown
        self.unknown_surface = unknown_surface
        self.strip_first = strip_first
        self.strip_all = strip_all
        self.denormalizer = denormalizer

    @classmethod
    def from_model(cls, model: proto.ModelProto, where: str) -> SentencePieceDecoder:
        def names(kind: int) -> set[str]:
            return {model.pieces[i] for i in model.of_type(kind)}

        squeeze = model.normalizer["remove_extra_whitespaces"]
        denormalizer = None
        if model.denormalizer is not None and model.denormalizer["precompiled_charsmap"]:
            denormalizer = SentencePieceNormalizer.from_spec(model.denormalizer, (), False, f"{where}: denormalizer_spec").rewriter
        (unknown,) = names(proto.UNKNOWN)
        return cls(
            names(proto.CONTROL),
            names(proto.BYTE),
            unknown,
            model.trainer["unk_surface"],
            squeeze or model.normalizer["add_dummy_prefix"],
            squeeze,
            denormalizer,
        )

    def stage(self) -> Stage:
        return _SentencePieceStage(self)

    def decode(self, tokens: list[str]) -> str:
        text = super().decode(tokens)
        return self.denormalizer.normalize(text)[0] if self.denormalizer else text


class _SentencePieceStage:
    """One piece at a time; bytes are held until their character is whole or cannot become so."""

    def __init__(self, decoder: SentencePieceDecoder):
        self._decoder = decoder
        self._run = bytearray()
        self._at_start = True
        self._stripped = self._shown = False

    def push(self, token: str) -> list[str]:
        decoder = self._decoder
        if token in decoder.byte_pieces and BYTE_TOKEN.fullmatch(token):
            self._run.append(int(token[3:5], 16))
            return self._show("".join(self._whole_characters()))
        out = self.finish()
        if self._stripped or self._shown:
            self._at_start = False
        text, self._stripped = self._text(token)
        return out + self._show(text)

    def finish(self) -> list[str]:
        run, self._run = self._run, bytearray()
        return self._show("".join(utf8_or_replacement(bytes(run))))

    def _show(self, text: str) -> list[str]:
        self._shown = self._shown or bool(text)
        return [text] if text else []

    def _whole_characters(self) -> list[str]:
        """Takes out of the run what no further byte can change."""
        out: list[str] = []
        while self._run and (len(self._run) >= 4 or complete(self._run)):
            first, *_ = utf8_or_replacement(bytes(self._run[:4]))
            out.append(first)
            del self._run[: len(first.encode()) if first != "\ufffd" or self._run[:3] == b"\xef\xbf\xbd" else 1]
        return out

    def _text(self, token: str) -> tuple[str, bool]:
        """What a piece shows, and whether a space sign was taken off that later pieces need not lose."""
        decoder = self._decoder
        if token in decoder.invisible:
            return "", False
        if token == decoder.unknown:
            return decoder.unknown_surface, False
        stripped = False
        if self._at_start and decoder.strip_first and token.startswith(SPACE_SIGN):
            token = token[1:]
            stripped = not decoder.strip_all
        return token.replace(SPACE_SIGN, " "), stripped


def complete(run: bytearray) -> bool:
    """Whether the first character of a run of bytes is decided: valid, or beyond repair."""
    try:
        bytes(run).decode()
        return True
    except UnicodeDecodeError as error:
        return error.start > 0 or error.reason != "unexpected end of data"


def utf8_or_replacement(data: bytes) -> list[str]:
    """The characters of UTF-8, and U+FFFD for each byte that belongs to none."""
    out: list[str] = []
    while data:
        for size in range(1, 5):
            try:
                out.append(data[:size].decode())
                data = data[size:]
                break
            except UnicodeDecodeError:
                continue
        else:
            out.append("\ufffd")
            data = data[1:]
    return out
