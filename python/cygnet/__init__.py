"""cygnet runs Transformer models on CPUs: text, vectors, labels or logits from the files that training frameworks write.

Importing this package starts no thread, opens no file and prints nothing; each public name loads its module when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from cygnet.errors import (
    CacheFull,
    Cancelled,
    ContextOverflow,
    CopyError,
    CygnetError,
    DecodingError,
    FormatError,
    MissingDependency,
    ModelClosed,
    ModelNotFound,
    NumericError,
    OptionError,
    OutOfMemory,
    OutOfRange,
    TemplateError,
    TokenizerError,
    UnsupportedModel,
    WeightsError,
    WriteError,
)

if TYPE_CHECKING:
    from cygnet import functional, reference
    from cygnet.generation.options import GenerationOptions
    from cygnet.generation.result import Delta, Generation, TokenLogprob, Usage
    from cygnet.generation.scoring import Score
    from cygnet.models.base import Model
    from cygnet.models.causal_lm import CausalLM
    from cygnet.models.chat import ChatTemplate
    from cygnet.models.classifier import Classification, CrossEncoder, Ranked, SequenceClassifier
    from cygnet.models.convert import convert
    from cygnet.models.encoder import Embeddings, Encoder
    from cygnet.models.generative import TextStream
    from cygnet.models.images import ImageClassifier, ImageEncoder
    from cygnet.models.inspection import Inspection
    from cygnet.models.load import load
    from cygnet.models.masked_lm import Fill, MaskedLM
    from cygnet.models.question_answerer import Answer, QuestionAnswerer
    from cygnet.models.replaced_token_detector import ReplacedTokenDetector, TokenScore
    from cygnet.models.seq2seq import Converted, Seq2Seq
    from cygnet.models.token_classifier import Entity, TokenClassifier
    from cygnet.system_info import info
    from cygnet.tokenizers.encoding import Encoding
    from cygnet.tokenizers.tokenizer import Tokenizer

__version__ = "0.1.0"

# Public name -> the module it is loaded from.
_HOMES = {
    "load": "models.load",
    "convert": "models.convert",
    "info": "system_info",
    "functional": "functional",
    "reference": "reference",
    # models
    "Model": "models.base",
    "CausalLM": "models.causal_lm",
    "Seq2Seq": "models.seq2seq",
    "Encoder": "models.encoder",
    "SequenceClassifier": "models.classifier",
    "CrossEncoder": "models.classifier",
    "TokenClassifier": "models.token_classifier",
    "QuestionAnswerer": "models.question_answerer",
    "MaskedLM": "models.masked_lm",
    "ReplacedTokenDetector": "models.replaced_token_detector",
    "ImageClassifier": "models.images",
    "ImageEncoder": "models.images",
    "ChatTemplate": "models.chat",
    "Tokenizer": "tokenizers.tokenizer",
    # what goes in and comes out
    "GenerationOptions": "generation.options",
    "Generation": "generation.result",
    "TextStream": "models.generative",
    "Delta": "generation.result",
    "TokenLogprob": "generation.result",
    "Usage": "generation.result",
    "Score": "generation.scoring",
    "Converted": "models.seq2seq",
    "Embeddings": "models.encoder",
    "Classification": "models.classifier",
    "Ranked": "models.classifier",
    "Entity": "models.token_classifier",
    "Answer": "models.question_answerer",
    "Fill": "models.masked_lm",
    "TokenScore": "models.replaced_token_detector",
    "Inspection": "models.inspection",
    "Encoding": "tokenizers.encoding",
}

# Spelled out for type checkers, which read no code.
__all__ = [
    "Answer",
    "CacheFull",
    "Cancelled",
    "CausalLM",
    "ChatTemplate",
    "Classification",
    "ContextOverflow",
    "Converted",
    "CrossEncoder",
    "CopyError",
    "CygnetError",
    "DecodingError",
    "Delta",
    "Embeddings",
    "Encoder",
    "Encoding",
    "Entity",
    "Fill",
    "FormatError",
    "Generation",
    "GenerationOptions",
    "ImageClassifier",
    "ImageEncoder",
    "Inspection",
    "MaskedLM",
    "MissingDependency",
    "Model",
    "ModelClosed",
    "ModelNotFound",
    "NumericError",
    "OptionError",
    "QuestionAnswerer",
    "Ranked",
    "ReplacedTokenDetector",
    "Score",
    "Seq2Seq",
    "SequenceClassifier",
    "OutOfMemory",
    "OutOfRange",
    "TemplateError",
    "TextStream",
    "TokenClassifier",
    "TokenLogprob",
    "TokenScore",
    "Tokenizer",
    "TokenizerError",
    "UnsupportedModel",
    "Usage",
    "WeightsError",
    "WriteError",
    "__version__",
    "convert",
    "functional",
    "info",
    "load",
    "reference",
]


def __getattr__(name: str) -> object:
    """Loads a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cygnet' has no attribute {name!r}")
    module = import_module(f".{_HOMES[name]}", __name__)
    value = getattr(module, name, module)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, also those that nobody has used yet."""
    return sorted(set(globals()) | set(__all__))
