"""cygnet runs Transformer models on CPUs: text, vectors, labels or logits from the files that training frameworks write.

Importing this package starts no thread, opens no file and prints nothing; each public name loads its module when it is first used.
"""

from importlib import import_module

from cygnet.errors import (
    CacheFull,
    Cancelled,
    ContextOverflow,
    CygnetError,
    FormatError,
    MissingDependency,
    ModelNotFound,
    OptionError,
    TemplateError,
    TokenizerError,
    UnsupportedModel,
    WeightsError,
    WriteError,
)

__version__ = "0.1.0"

_HOMES = {
    "load": "models.load",
    "convert": "models.convert",
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
    "info": "system_info",
    "functional": "functional",
    "reference": "reference",
}

__all__ = [
    "CacheFull",
    "Cancelled",
    "ContextOverflow",
    "CygnetError",
    "FormatError",
    "MissingDependency",
    "ModelNotFound",
    "OptionError",
    "TemplateError",
    "TokenizerError",
    "UnsupportedModel",
    "WeightsError",
    "WriteError",
    "__version__",
    *_HOMES,
]


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'cygnet' has no attribute {name!r}")
    module = import_module(f".{_HOMES[name]}", __name__)
    value = getattr(module, name, module)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(__all__))
