"""SentencePiece model files (.model, .spm): unigram, bpe, word and char models."""

from __future__ import annotations

from pathlib import Path

from cygnet.errors import TokenizerError
from cygnet.files import read_bytes
from cygnet.tokenizers import sentencepiece_proto as proto
from cygnet.tokenizers.sentencepiece import SentencePieceDecoder, SentencePieceModel, SentencePieceNormalizer, segmenter
from cygnet.tokenizers.tokenizer import Tokenizer


def load(path: Path) -> Tokenizer:
    """Tokenizer from a SentencePiece model file.

    As in the library, control pieces in the text are plain text, and neither BOS nor EOS is added.

    Raises
    ------
    TokenizerError
        Where the file is damaged; names the field.
    """
    return from_bytes(read_bytes(path, TokenizerError), str(path))


def from_bytes(data: bytes, where: str = "SentencePiece model") -> Tokenizer:
    """Tokenizer from the bytes of a SentencePiece model."""
    model = proto.read_model_proto(data, where)
    pieces = segmenter(model, where)
    return Tokenizer(
        SentencePieceModel(model.pieces, pieces, *model.of_type(proto.UNKNOWN)),
        normalizer=SentencePieceNormalizer.from_model(model, where),
        decoder=SentencePieceDecoder.from_model(model, where),
    )
