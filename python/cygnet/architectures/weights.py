"""Strict loading: every tensor a spec asks for is found in the file, every tensor of the file is used or ignored on purpose.

A family gives rows (our name, their name, transform); `bind` turns them and an opened file into lazy views, or raises one WeightsError that
lists all missing, unused and misshapen tensors.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping

import numpy as np

from cygnet.architectures.inventory import inventory
from cygnet.architectures.transforms import ShapeMismatch, plain
from cygnet.errors import WeightsError
from cygnet.records import record

logger = logging.getLogger("cygnet")

# Buffers that files carry along and no model needs: position ranges, rotary frequencies, the constants of causal masks.
IGNORED_TENSORS = (
    r"(.*\.)?position_ids",
    r"(.*\.)?token_type_ids",
    r"(.*\.)?(rotary_emb|rotary_pos_emb|rotary)\.(inv_freq|cos_cached|sin_cached|cos|sin)",
    r"(.*\.)?masked_bias",
    r"(.*\.)?num_batches_tracked",
)
# Names that training wrappers put before all others.
WRAPPERS = ("module.", "_orig_mod.", "0.auto_model.", "auto_model.", "base_model.model.")
OLD_NORM = re.compile(r"((?:.*\.)?(?:[^.]*_)?(?:layer_?norm|norm)_?\d*)\.(gamma|beta)", re.IGNORECASE)
OLD_PARTS = {"gamma": "weight", "beta": "bias"}
INDEX = re.compile(r"^(encoder|decoder)\.(\d+)\.")
HOLDS_FRACTIONS = re.compile(r"(?!(I|U)\d|BOOL|C\d)")  # IQ4_NL and its kin are blocks of fractions
EXPERT = re.compile(r"\.experts\.(\d+)\.")


@record
class Row:
    """One line of a family's weight table.

    Attributes
    ----------
    ours : str
        Our name without `.weight` or `.bias`; `{s}` stands for the stack, `{i}` for the layer, `{e}` for the expert.
    source : str or tuple of str
        Their name, or several of which the first present one is taken. `*` stands for weight or bias where they are not set off by a
        dot; `{h}` runs over all numbers present, whose tensors go to the transform together; a trailing `!` says that the name is whole as it
        stands. Empty: no file holds the tensor.
    transform : callable
        From cygnet.architectures.transforms.
    bias : bool, str, tuple of str or None
        Whether the file must hold a bias (None: it may), or the bias's own full name, or several of which the first present one is taken.
    also : tuple of str
        Full names of further tensors that the transform needs.
    """

    ours: str
    source: str | tuple = ()
    transform: Callable = plain
    bias: bool | str | tuple | None = True
    also: tuple = ()

    def names(self, part):
        """Full source names to look for, with their placeholders."""
        if part == "bias" and isinstance(self.bias, (str, tuple)):
            return (self.bias,) if isinstance(self.bias, str) else self.bias
        alternatives = (self.source,) if isinstance(self.source, str) else self.source
        return tuple(_whole(name, part) for name in alternatives)


def _whole(name, part):
    if name.endswith("!") or not part:
        return name.removesuffix("!")
    return name.replace("*", part) if "*" in name else f"{name}.{part}"


class Source(Mapping):
    """Tensors of a file under their family's bare names: wrappers and the base model's prefix taken off, gamma and beta renamed.

    Parameters
    ----------
    tensors : Mapping of str to Tensor
    prefixes : tuple of str
        The base model's name as it may stand before its tensors, such as "bert.".
    """

    def __init__(self, tensors, prefixes=()):
        self._tensors, self.stored_name = {}, {}
        for stored, tensor in tensors.items():
            name = bare_name(stored, prefixes)
            if name in self._tensors:
                raise WeightsError(f"the file holds {name!r} twice: as {self.stored_name[name]!r} and as {stored!r}")
            self._tensors[name], self.stored_name[name] = tensor, stored

    def __getitem__(self, name):
        return self._tensors[name]

    def __iter__(self):
        return iter(self._tensors)

    def __len__(self):
        return len(self._tensors)

    def same(self, first, second):
        """Whether two tensors hold the same values (bytes are compared where the types agree)."""
        a, b = self[first], self[second]
        if a.shape != b.shape:
            return False
        if a.dtype == b.dtype:
            return bool(np.array_equal(a.raw(), b.raw()))
        return bool(np.array_equal(a.to_float32(), b.to_float32()))

    def tied(self, wanted, head, embedding):
        """Whether the output layer is the token embedding.

        What the file holds decides where it disagrees with the settings: a head that differs from the embedding is used, with a warning, even
        if they are to be tied. A head that is wanted and absent is not made up: it is reported as missing.
        """
        if not wanted or head not in self or embedding not in self:
            return wanted
        if self.same(head, embedding):
            return True
        logger.warning("the settings tie the output layer to the token embedding, but the file holds %r with other values; it is used", head)
        return False


def bare_name(name, prefixes):
    """A stored name without wrappers, prefix and the old spelling of norms.

    Examples
    --------
    >>> bare_name("module.bert.embeddings.LayerNorm.gamma", ("bert.",))
    'embeddings.LayerNorm.weight'
    >>> bare_name("vision.layer_scale.gamma", ("bert.",))
    'vision.layer_scale.gamma'
    """
    for wrapper in WRAPPERS:
        name = name.removeprefix(wrapper)
    for prefix in prefixes:
        if name.startswith(prefix):
            name = name[len(prefix) :]
            break
    old = OLD_NORM.fullmatch(name)
    return f"{old[1]}.{OLD_PARTS[old[2]]}" if old else name


def bind(spec, rows, source, ignored=()):
    """Find every tensor of a spec in a file.

    Parameters
    ----------
    spec : ModelSpec
    rows : iterable of Row
    source : Source
    ignored : iterable of str
        Patterns of bare names that may be left over, beside IGNORED_TENSORS.

    Returns
    -------
    dict of str to WeightView

    Raises
    ------
    WeightsError
        Listing all missing, misshapen and unused tensors.
    """
    table = {row.ours: row for row in rows}
    views, used, missing, misshapen, mistyped = {}, set(), [], [], []
    for name, shape in inventory(spec).items():
        module, part = _split(name)
        row, places = _row(table, module)
        if part == "bias" and row.bias is False:
            continue
        found = _find(row, part, places, source)
        used.update(found or ())
        for key in found or ():
            if not HOLDS_FRACTIONS.match(source[key].dtype):
                mistyped.append(f"{source.stored_name[key]} holds {source[key].dtype}, numbers with a fraction are expected")
        if found is None:
            if part != "bias" or row.bias is not None:
                missing.append(row.names(part)[0].format(**places, h=0))
            continue
        try:
            views[name] = row.transform([source[key] for key in found], part, shape)
        except ShapeMismatch as error:
            misshapen.append(str(error))
    allowed = re.compile("|".join(f"(?:{pattern})" for pattern in (*IGNORED_TENSORS, *ignored)))
    unused = [source.stored_name[name] for name in source if name not in used and not allowed.fullmatch(name)]
    if missing or misshapen or mistyped or unused:
        raise WeightsError(_complaint(spec.family, missing, misshapen, mistyped, unused))
    return views


def _split(name):
    head, _, part = name.rpartition(".")
    return (head, part) if part in ("weight", "bias") else (name, "")


def _row(table, module):
    """The row for one of our modules, and what its placeholders stand for."""
    places = {"s": module.partition(".")[0]}
    template = module
    layer, expert = INDEX.match(module), EXPERT.search(module)
    if layer:
        places["i"] = layer[2]
        template = INDEX.sub(r"\1.{i}.", module)
    by_expert = template
    if expert:
        places["e"] = expert[1]
        template = EXPERT.sub(".experts.{e}.", template)
    for key in (module, by_expert, template, "{s}" + template[len(places["s"]) :]):
        if key in table:
            return table[key], places
    raise LookupError(f"no row for {module!r}")


def _find(row, part, places, source):
    """Source names that make up one tensor; empty where none is needed, None where one is missing."""
    names = row.names(part)
    if row.also:
        together = [pattern.format(**places) for pattern in (*names, *row.also)]
        return together if all(name in source for name in together) else None
    for pattern in names:
        if "{h}" in pattern:
            several = [pattern.format(**places, h=0)]
            while several[-1] in source:
                several.append(pattern.format(**places, h=len(several)))
            if len(several) > 1:
                return several[:-1]
        elif pattern.format(**places) in source:
            return [pattern.format(**places)]
    return None if names else []


def _complaint(family, missing, misshapen, mistyped, unused):
    lines = [f"the tensors do not fit the {family} model:"]
    # One stored tensor may serve several of ours; it is named once.
    for title, entries in (("missing", missing), ("wrong shape", misshapen), ("wrong type", mistyped), ("not used by the model", unused)):
        if entries:
            entries = list(dict.fromkeys(entries))
            lines.append(f"  {title} ({len(entries)}): " + "; ".join(entries))
    lines.append("  check that config.json belongs to these weights")
    return "\n".join(lines)
