"""What a family file hands over: which models it is, how a config becomes a spec, and where the tensors are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cygnet.architectures.spec import ModelSpec, Task
from cygnet.records import record


@record
class Built:
    """A spec, the weight table that serves it, and patterns of tensors that may be left over."""

    spec: ModelSpec
    rows: tuple
    ignored: tuple = ()


@record
class Family:
    """One architecture family.

    Attributes
    ----------
    name : str
    build : callable
        build(config, source, task) -> Built, from a Config, a Source and a Task.
    classes : dict of str to Task
        Suffixes of the class names in a config's `architectures`, the base class being the empty suffix or "Model".
    default : Task
        Where a config names no class.
    prefixes : tuple of str
        The base model's name as files put it before its tensors.
    ignored_settings : tuple of str
        Config keys that never matter here, beside the common ones.
    gguf : callable or None
        gguf(config, weights) -> settings that a GGUF file tells by its tensors instead of its metadata.
    """

    name: str
    build: Callable
    classes: Mapping
    default: Task
    prefixes: tuple = ()
    ignored_settings: tuple = ()
    gguf: Callable | None = None
