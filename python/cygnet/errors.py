"""Every error cygnet raises on purpose: a subclass of CygnetError and of the built-in it is nearest to."""


class CygnetError(Exception):
    """Base of all errors raised on purpose; the message says what was wrong, where, and what to do."""


class OptionError(CygnetError, ValueError):
    """An argument or a combination of arguments that has no meaning."""


class FormatError(CygnetError, ValueError):
    """A weights file that is damaged, hostile or of an unknown kind; names the file and the field or tensor."""


class WeightsError(CygnetError, ValueError):
    """Tensors that do not fit the model: lists all missing, unused and misshapen ones at once."""


class UnsupportedModel(CygnetError, ValueError):
    """An architecture or a setting that changes the mathematics and is not known; lists what is."""


class TokenizerError(CygnetError, ValueError):
    """A tokenizer file that is damaged, or a component that is not known; names the place in the file."""


class TemplateError(CygnetError, ValueError):
    """A chat template that refuses the conversation or cannot be rendered; carries the template's own message."""


class ContextOverflow(CygnetError, ValueError):
    """A prompt that does not fit the model's context; names both lengths."""


class ModelNotFound(CygnetError, FileNotFoundError):
    """No model under that name; says where was looked and how to get one."""


class WriteError(CygnetError, OSError):
    """A file or folder that cannot be written; names it and what the system said."""


class MissingDependency(CygnetError, ImportError):
    """An optional package is needed; names the extra that brings it."""


class ModelClosed(CygnetError, ValueError):
    """A model that was closed cannot be used any more."""


class OutOfMemory(CygnetError, MemoryError):
    """The machine, or a limit on this process, gives no more memory."""


class CacheFull(OutOfMemory):
    """The key/value memory limit is reached; names the limit and what was asked for."""


class OutOfRange(CygnetError, OverflowError):
    """A number that the chosen form cannot hold; says which form can."""


class CopyError(CygnetError, TypeError):
    """Something that cannot be copied or pickled; says what to do instead."""


class Cancelled(CygnetError):
    """The work was stopped by its cancel flag."""


class NumericError(CygnetError, ArithmeticError):
    """Results that are not numbers: the model's weights or settings are damaged."""


class DecodingError(CygnetError, RuntimeError):
    """No token can follow: all are barred, or the logits are not numbers."""
