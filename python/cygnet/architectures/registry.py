"""From a checkpoint to a spec and its weights: model_type or GGUF architecture -> family -> ModelSpec and lazy tensors."""

from __future__ import annotations

import dataclasses
import importlib
from contextlib import contextmanager
from pathlib import Path

from cygnet.architectures import gguf, gguf_tensors
from cygnet.architectures.config import Config
from cygnet.architectures.defaults import DEFAULTS
from cygnet.architectures.marian import config_of_marian
from cygnet.architectures.spec import ModelKind, ModelSpec, Task
from cygnet.architectures.spellings import in_torch_spelling
from cygnet.architectures.tokens import token_ids
from cygnet.architectures.validate import check_heads, check_numbers, check_spec
from cygnet.architectures.weights import Source, bind
from cygnet.errors import CygnetError, UnsupportedModel, WeightsError
from cygnet.files import read_json
from cygnet.formats import open_weights
from cygnet.records import record

# model_type of config.json -> module of cygnet.architectures.families, and the name of the Family in it where it holds several
FAMILIES = {
    "albert": "albert",
    "arcee": "arcee",
    "bart": "bart",
    "bert": "bert",
    "bert-generation": "bert_kin:BERT_GENERATION",
    "biogpt": "biogpt",
    "blenderbot": "bart:BLENDERBOT",
    "blenderbot-small": "bart:BLENDERBOT_SMALL",
    "bloom": "bloom",
    "camembert": "roberta",
    "codegen": "gptj:CODEGEN",
    "cohere": "cohere",
    "cohere2": "cohere:COHERE2",
    "cwm": "seed_oss:CWM",
    "data2vec-text": "roberta",
    "deberta": "deberta",
    "deberta-v2": "deberta_v2",
    "deit": "vit:DEIT",
    "dinov2": "dinov2",
    "dinov2_with_registers": "dinov2:REGISTERS",
    "distilbert": "distilbert",
    "electra": "electra",
    "ernie": "bert_kin:ERNIE",
    "ernie4_5": "ernie4_5",
    "eurobert": "eurobert",
    "exaone4": "exaone4",
    "falcon": "falcon",
    "gemma": "gemma",
    "gemma2": "gemma:GEMMA2",
    "gemma3_text": "gemma:GEMMA3",
    "glm": "glm",
    "glm4": "glm:GLM4",
    "gpt2": "gpt2",
    "gpt_bigcode": "gpt_bigcode",
    "gpt_neo": "gpt_neo",
    "gpt_neox": "gpt_neox",
    "gptj": "gptj",
    "granite": "granite",
    "granitemoe": "granite:GRANITEMOE",
    "granitemoeshared": "granite:GRANITEMOE",
    "gte": "gte",
    "helium": "ernie4_5:HELIUM",
    "hunyuan_v1_dense": "hunyuan",
    "llama": "llama",
    "m2m_100": "bart:M2M_100",
    "marian": "bart:MARIAN",
    "marian-nmt": "marian_nmt",
    "mbart": "bart:MBART",
    "megatron-bert": "bert_kin:MEGATRON_BERT",
    "ministral": "mistral",
    "mistral": "mistral",
    "mixtral": "mistral:MIXTRAL",
    "modernbert": "modernbert",
    "mpnet": "mpnet",
    "mpt": "mpt",
    "mt5": "t5:MT5",
    "mvp": "bart:MVP",
    "nemotron": "arcee:NEMOTRON",
    "nomic_bert": "nomic_bert",
    "olmo": "olmo",
    "olmo2": "olmo:OLMO2",
    "olmo3": "olmo:OLMO3",
    "olmoe": "olmo:OLMOE",
    "openai-gpt": "openai_gpt",
    "opt": "opt",
    "pegasus": "bart:PEGASUS",
    "persimmon": "persimmon",
    "phi": "phi",
    "phi3": "phi3",
    "plbart": "bart:PLBART",
    "qwen2": "qwen",
    "qwen2_moe": "qwen:QWEN2_MOE",
    "qwen3": "qwen:QWEN3",
    "qwen3_moe": "qwen:QWEN3_MOE",
    "rembert": "bert_kin:REMBERT",
    "roberta": "roberta",
    "roberta-prelayernorm": "roberta:PRE_LAYER_NORM",
    "roformer": "bert_kin:ROFORMER",
    "seed_oss": "seed_oss",
    "smollm3": "smollm3",
    "stablelm": "stablelm",
    "starcoder2": "starcoder2",
    "t5": "t5",
    "torch_transformer": "torch_transformer",
    "umt5": "t5:UMT5",
    "vit": "vit",
    "xglm": "biogpt:XGLM",
    "xlm-roberta": "roberta",
    "xlm-roberta-xl": "roberta:XLM_ROBERTA_XL",
}


@record
class LoadedSpec:
    """A model ready to be packed: what it computes and where its numbers are.

    Attributes
    ----------
    spec : ModelSpec
    weights : dict of str to WeightView
        By the names of cygnet.architectures.spec.
    config : dict
        The settings as they were read.
    """

    spec: ModelSpec
    weights: dict
    config: dict


def family_of(model_type):
    """The Family of a model_type; UnsupportedModel lists the known ones."""
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        raise UnsupportedModel(f"model_type {model_type!r} is not supported; known are {', '.join(sorted(FAMILIES))}")
    module, _, name = FAMILIES[model_type].partition(":")
    return getattr(importlib.import_module(f"cygnet.architectures.families.{module}"), name or "FAMILY")


def task_of(family, config):
    """The Task that a config's `architectures` asks for; the longest known suffix of the class name counts."""
    names = config.get("architectures") or []
    if not names:
        return family.default
    if not isinstance(names, list) or not isinstance(names[0], str):
        raise UnsupportedModel(f"config of {config.name}: architectures = {names!r} is not a list of class names")
    suffixes = [suffix for suffix in family.classes if names[0].endswith(suffix)]
    # These end like a bare model and have heads, which must not be lost in silence.
    headed = names[0].endswith(("HeadModel", "HeadsModel"))
    suffixes = [suffix for suffix in suffixes if not headed or suffix not in ("", "Model")]
    if not suffixes:
        known = ", ".join(f"*{suffix}" for suffix in family.classes)
        raise UnsupportedModel(f"config of {config.name}: the class {names[0]!r} is not supported; known are {known}")
    return family.classes[max(suffixes, key=len)]


def resolve(config, weights, generation=None, *, task=None, ignore_unknown_config=False):
    """Turn settings and an opened weights file into a spec and its tensors.

    Parameters
    ----------
    config : dict
        config.json; for a GGUF file an empty dict, its own metadata is used.
    weights : WeightFile
        Or any mapping of names to tensors.
    generation : dict, optional
        generation_config.json.
    task : Task, optional
        Which head to load, instead of the one the config's class names: Task.ENCODER gives hidden states only.
    ignore_unknown_config : bool
        Accept config keys that are not known, though they may change the results.

    Returns
    -------
    LoadedSpec

    Raises
    ------
    UnsupportedModel
        For an unknown model_type, class, or setting.
    WeightsError
        Listing every tensor that is missing, unused or misshapen.

    Examples
    --------
    >>> resolve({"model_type": "lstm"}, {})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    cygnet.errors.UnsupportedModel: model_type 'lstm' is not supported; known are ...
    """
    from_gguf = getattr(weights, "kind", None) == "gguf"
    model_type = gguf.model_type_of(weights) if from_gguf else config.get("model_type")
    family = family_of(model_type)
    source = Source(in_torch_spelling(weights), () if from_gguf else family.prefixes)
    _check_task(task, family, model_type)
    with _reporting(model_type):
        config = gguf.config_from_metadata(weights, family.gguf) if from_gguf else config
        settings = Config(config if from_gguf else {**DEFAULTS.get(model_type, {}), **config}, model_type)
        check_numbers(config, model_type)
        built = family.build(settings, gguf_tensors.Names(source) if from_gguf else source, task or task_of(family, settings))
        built = gguf_tensors.rebuild(built, source, config) if from_gguf else built
        check_spec(built.spec)
        check_heads(settings)
    if not from_gguf:
        settings.finish(family.ignored_settings, ignore_unknown=ignore_unknown_config)
    spec = dataclasses.replace(built.spec, tokens=token_ids(config, generation, seq2seq=built.spec.kind is ModelKind.ENCODER_DECODER))
    try:
        return LoadedSpec(spec, bind(spec, built.rows, source, built.ignored), dict(config))
    except WeightsError as error:
        if task is None:
            raise
        raise WeightsError(f"{error}\n  task={task.value!r} was asked for: this checkpoint may have no head for it") from None


def _check_task(task, family, model_type):
    """Raise UnsupportedModel for a task that no model of the family has a head for."""
    offered = dict.fromkeys((family.default, *family.classes.values()))
    if task is not None and task is not Task.ENCODER and task not in offered:
        raise UnsupportedModel(f"{model_type} models have no head for task={task.value!r}; theirs are {', '.join(t.value for t in offered)}")


@contextmanager
def _reporting(name):
    """Turn the errors of settings that make no sense into UnsupportedModel."""
    try:
        yield
    except CygnetError:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
        raise UnsupportedModel(f"config of {name}: its settings do not make a model: {type(error).__name__}: {error}") from error


def load_spec(path, *, task=None, ignore_unknown_config=False):
    """Open a model folder or file: config.json and generation_config.json beside the weights, or one GGUF file.

    Parameters
    ----------
    path : str or Path
    task, ignore_unknown_config
        As `resolve` takes them.

    Returns
    -------
    LoadedSpec
        Its views read from the opened file, which stays open as long as they live.

    Raises
    ------
    ModelNotFound
        If the folder, its config.json or its weights do not exist.
    FormatError
        If a file is damaged.
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    weights = open_weights(path)
    try:
        config = stated_config(weights, folder)
        generation = read_json(folder / "generation_config.json", None)
        return resolve(config, weights, generation, task=task, ignore_unknown_config=ignore_unknown_config)
    except BaseException:
        weights.close()
        raise


def stated_config(weights, folder):
    """What a model says of itself: config.json, or what Marian's files hold; empty for GGUF, whose metadata needs its tensors to be read."""
    if weights.kind == "gguf":
        return {}
    return config_of_marian(weights) if weights.kind == "marian" else read_json(folder / "config.json")


__all__ = ["FAMILIES", "LoadedSpec", "Task", "family_of", "load_spec", "resolve", "stated_config"]
