"""Model folders whose ids are not those of their SentencePiece file, told by the tokenizer class that they name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from cygnet.errors import TokenizerError
from cygnet.tokenizers import listed, rearranged
from cygnet.tokenizers.folder_tokens import ADVICE
from cygnet.tokenizers.settings import read_object
from cygnet.tokenizers.tokenizer import Tokenizer

FAIRSEQ_FILE = "sentencepiece.bpe.model"
# Class of transformers -> its SentencePiece file, and what reads it from (folder, file).
CLASSES: dict[str, tuple[str, Callable[[Path, Path], Tokenizer]]] = {
    "XLMRobertaTokenizer": (FAIRSEQ_FILE, partial(rearranged.load, layout=rearranged.XLM_R)),
    "CamembertTokenizer": (FAIRSEQ_FILE, partial(rearranged.load, layout=rearranged.CAMEMBERT_LAYOUT)),
    "MBartTokenizer": (FAIRSEQ_FILE, partial(rearranged.load, layout=rearranged.MBART)),
    "MBart50Tokenizer": (FAIRSEQ_FILE, partial(rearranged.load, layout=rearranged.MBART_50)),
    "PegasusTokenizer": ("spiece.model", rearranged.load_pegasus),
    "MarianTokenizer": ("source.spm", listed.load_marian),
    "M2M100Tokenizer": (FAIRSEQ_FILE, listed.load_m2m),
}
# Classes with an order of their own that is not written here.
REFUSED = {
    "BarthezTokenizer",
    "BartphoTokenizer",
    "CpmTokenizer",
    "ErnieMTokenizer",
    "LayoutXLMTokenizer",
    "MLukeTokenizer",
    "NllbTokenizer",
    "PLBartTokenizer",
    "SeamlessM4TTokenizer",
    "Speech2TextTokenizer",
    "XGLMTokenizer",
    "XLMProphetNetTokenizer",
}
# The class of a folder that names none, by the kind of its model.
CLASS_OF_MODEL = {
    "xlm-roberta": "XLMRobertaTokenizer",
    "xlm-roberta-xl": "XLMRobertaTokenizer",
    "xmod": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
    "mbart": "MBartTokenizer",
    "mbart50": "MBart50Tokenizer",
    "pegasus": "PegasusTokenizer",
    "pegasus_x": "PegasusTokenizer",
    "bigbird_pegasus": "PegasusTokenizer",
    "marian": "MarianTokenizer",
    "m2m_100": "M2M100Tokenizer",
    "layoutxlm": "LayoutXLMTokenizer",
    "nllb": "NllbTokenizer",
    "nllb-moe": "NllbTokenizer",
    "plbart": "PLBartTokenizer",
    "seamless_m4t": "SeamlessM4TTokenizer",
    "seamless_m4t_v2": "SeamlessM4TTokenizer",
    "speech_to_text": "Speech2TextTokenizer",
    "xglm": "XGLMTokenizer",
    "xlm-prophetnet": "XLMProphetNetTokenizer",
}
# Names that say nothing of the vocabulary.
GENERIC = {"PreTrainedTokenizer", "TokenizersBackend", "SentencePieceBackend", "PythonBackend"}


def class_of(folder: Path) -> str | None:
    """The tokenizer class of a folder if its ids are not those of its SentencePiece file, else None."""
    config = read_object(folder / "config.json")
    for named in (read_object(folder / "tokenizer_config.json").get("tokenizer_class"), config.get("tokenizer_class")):
        if isinstance(named, str) and named.removesuffix("Fast") not in GENERIC:
            name = named.removesuffix("Fast")
            return name if name in CLASSES or name in REFUSED else None
    kind = config.get("model_type")
    if kind is None and has_listed_source(folder):
        return "MarianTokenizer"
    return CLASS_OF_MODEL.get(kind) if isinstance(kind, str) else None


def has_listed_source(folder: Path) -> bool:
    """Whether a source.spm lies beside a list of ids, as in Marian's own packages."""
    return (folder / "source.spm").is_file() and ((folder / "vocab.json").is_file() or bool(listed.yaml_lists(folder)))


def load(folder: Path, name: str) -> Tokenizer:
    """Tokenizer of a folder without tokenizer.json whose class has this name.

    Raises
    ------
    TokenizerError
        Where the class is not known in its own order, or a file is missing, damaged or contradicts another.
    """
    if name not in CLASSES:
        raise TokenizerError(f"{folder}: {name} numbers its tokens in an order that only tokenizer.json tells; {ADVICE}")
    file, reader = CLASSES[name]
    if not (folder / file).is_file():
        raise TokenizerError(f"{folder}: {name} needs {file}, which is not there; {ADVICE}")
    tokenizer = reader(folder, folder / file)
    tokenizer.settings.setdefault("tokenizer_class", name)
    return tokenizer
