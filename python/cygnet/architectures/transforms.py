"""From stored tensors to the tensors a spec names: selections of stored rows stay lazy and quantised, everything else is float32.

A transform is called as transform(tensors, part, shape): the stored tensors of one row of a weight table, "weight" or "bias", and the
shape the spec asks for; it returns a WeightView, or raises ShapeMismatch.
"""

from __future__ import annotations

from math import prod

import numpy as np

from cygnet.formats.tensor import Tensor
from cygnet.reference.ops import layer_norm

NO_ROWS = np.empty(0, np.int64)  # what a selection gives that does not fit the tensor


class ShapeMismatch(ValueError):
    """A stored tensor that cannot have the shape the spec asks for; the message says which and why."""


class WeightView:
    """One tensor of a spec, not yet read.

    Attributes
    ----------
    shape : tuple of int
    dtype : str
        The type of the stored elements, or "F32" for a computed tensor.
    """

    shape: tuple
    dtype: str = "F32"

    def to_float32(self, rows=None):
        """The values, or those of a slice of the first axis, as float32."""
        raise NotImplementedError

    def row_source(self):
        """(tensor, rows) where the view is whole rows of one stored tensor, chosen by a slice or an index array; else None."""
        return None

    def sources(self):
        """The stored tensors that it is made from."""
        return ()

    def release(self):
        """Tell the kernel that the stored bytes are not needed for now."""


class StoredRows(WeightView):
    """Rows of one stored tensor, in any order.

    Parameters
    ----------
    tensor : Tensor
        Its first axis is the rows.
    rows : slice or (n,) int64, optional
        All of them by default.
    """

    def __init__(self, tensor, rows=None):
        count = tensor.shape[0]
        self.tensor = tensor
        self.rows = slice(0, count) if rows is None else rows
        chosen = len(range(*self.rows.indices(count))) if isinstance(self.rows, slice) else len(self.rows)
        self.shape = (chosen, *tensor.shape[1:])
        self.dtype = tensor.dtype

    def to_float32(self, rows=None):
        start, stop, _ = (rows or slice(None)).indices(self.shape[0])
        if isinstance(self.rows, slice):
            return self.tensor.to_float32(slice(self.rows.start + start, self.rows.start + stop))
        wanted = self.rows[start:stop]
        if not len(wanted):
            return np.empty((0, *self.shape[1:]), np.float32)
        low, high = int(wanted.min()), int(wanted.max()) + 1
        return self.tensor.to_float32(slice(low, high))[wanted - low]

    def row_source(self):
        return self.tensor, self.rows

    def sources(self):
        return (self.tensor,)

    def release(self):
        self.tensor.release()


class Computed(WeightView):
    """A tensor made from stored ones, or from nothing, each time it is asked for.

    Parameters
    ----------
    shape : tuple of int
    make : callable
        Returns the whole array.
    tensors : iterable of Tensor
        What it reads, to be released.
    """

    def __init__(self, shape, make, tensors=()):
        self.shape = tuple(shape)
        self._make = make
        self._tensors = tuple(tensors)

    def sources(self):
        return self._tensors

    def to_float32(self, rows=None):
        values = np.asarray(self._make(), np.float32).reshape(self.shape)
        return values if rows is None else values[rows]

    def release(self):
        for tensor in self._tensors:
            tensor.release()


def reshaped(tensor, shape):
    """The same stored bytes under another shape of as many elements."""
    return tensor if tensor.shape == tuple(shape) else Tensor(tensor.name, tensor.dtype, shape, tensor.raw, tensor.release)


def _same(tensor, shape, what="shape"):
    if tuple(tensor.shape) != tuple(shape):
        raise ShapeMismatch(f"{tensor.name} has {what} {list(tensor.shape)}, expected {list(shape)}")


def plain(tensors, part, shape):
    """The stored tensor as it is; axes of length one do not count."""
    (tensor,) = tensors
    squeezed = [size for size in tensor.shape if size != 1]
    if squeezed != [size for size in shape if size != 1]:
        _same(tensor, shape)
    return StoredRows(reshaped(tensor, shape))


def flattened(tensors, part, shape):
    """The stored tensor with its trailing axes merged: the kernel of a convolution over patches as a matrix."""
    (tensor,) = tensors
    if tensor.shape[0] != shape[0] or prod(tensor.shape) != prod(shape):
        _same(tensor, shape)
    return StoredRows(reshaped(tensor, shape))


def rows(select):
    """Rows of a fused tensor; `select` is a slice, an index array, or a callable that makes one from the number of stored rows."""

    def transform(tensors, part, shape):
        (tensor,) = tensors
        tensor = reshaped(tensor, (prod(tensor.shape[:-1]), tensor.shape[-1])) if len(shape) == 2 else reshaped(tensor, (prod(tensor.shape),))
        chosen = select(tensor.shape[0]) if callable(select) else select
        stop = chosen.stop if isinstance(chosen, slice) else int(chosen.max(initial=-1)) + 1
        if stop > tensor.shape[0]:
            raise ShapeMismatch(f"{tensor.name} has {tensor.shape[0]} rows, at least {stop} are needed")
        view = StoredRows(tensor, chosen)
        if view.shape != tuple(shape):
            raise ShapeMismatch(f"{tensor.name} has shape {list(tensor.shape)}, which gives {list(view.shape)}, expected {list(shape)}")
        return view

    return transform


def convolution(groups):
    """The kernel of a convolution over positions, (out, in / groups, size), as a matrix (out, size * in) of windows laid out position by position."""

    def transform(tensors, part, shape):
        (tensor,) = tensors
        if part == "bias":
            return plain(tensors, part, shape)
        out = shape[0]
        size, own = shape[1] // out, out // groups
        _same(tensor, (out, own, size))

        def make():
            kernel, matrix = tensor.to_float32(), np.zeros((out, size, out), np.float32)
            for group in range(groups):
                rows = slice(group * own, (group + 1) * own)
                matrix[rows, :, rows] = kernel[rows].swapaxes(1, 2)
            return matrix

        return Computed(shape, make, tensors)

    return transform


def part_of(index, count):
    """The `index`-th of `count` equal parts of a fused tensor's rows."""
    return rows(lambda total: slice(index * (total // count), (index + 1) * (total // count)))


def transposed(index=0, count=1):
    """A matrix stored (in, out), as GPT-2's Conv1D keeps it; the `index`-th of `count` equal parts of its outputs."""

    def transform(tensors, part, shape):
        (tensor,) = tensors
        if part == "bias":
            return part_of(index, count)(tensors, part, shape)
        out, inner = shape
        _same(tensor, (inner, out * count), "shape (in, out)")
        return Computed(shape, lambda: np.ascontiguousarray(tensor.to_float32()[:, index * out : (index + 1) * out].T), tensors)

    return transform


def add_one(tensors, part, shape):
    """Norm weights stored as their distance from one (Gemma)."""
    (tensor,) = tensors
    _same(tensor, shape)
    return Computed(shape, lambda: tensor.to_float32() + np.float32(1), tensors)


def weight_only(transform):
    """Does it to the weight and leaves the bias as it is."""
    return lambda tensors, part, shape: (transform if part == "weight" else plain)(tensors, part, shape)


def stacked(tensors, part, shape):
    """The rows of several tensors one below the other."""
    width = shape[-1]
    if sum(prod(tensor.shape) for tensor in tensors) != prod(shape):
        raise ShapeMismatch(f"{tensors[0].name} and {len(tensors) - 1} more do not make {list(shape)}")
    return Computed(shape, lambda: np.concatenate([tensor.to_float32().reshape(-1, width) for tensor in tensors]), tensors)


def with_gap(first, count):
    """A table with `count` rows of zeros behind its first `first` rows."""

    def transform(tensors, part, shape):
        (tensor,) = tensors
        if prod(tensor.shape) != (shape[0] - count) * shape[1]:
            _same(tensor, (shape[0] - count, shape[1]))

        def make():
            rows = tensor.to_float32().reshape(-1, shape[1])
            return np.concatenate([rows[:first], np.zeros((count, shape[1]), np.float32), rows[first:]])

        return Computed(shape, make, tensors)

    return transform


def scaled_rows(tensors, part, shape):
    """A map whose outputs are multiplied, each by its own number."""
    tensor, scale = tensors
    _same(tensor, shape)
    return Computed(shape, lambda: (tensor.to_float32().T * scale.to_float32().reshape(-1)).T, tensors)


def per_head(heads):
    """A norm with a weight for each head, (heads, head_dim): stored as one matrix or as a vector a head."""

    def transform(tensors, part, shape):
        if len(tensors) == 1 and heads > 1:
            _same(tensors[0], (heads, *shape))
            return StoredRows(tensors[0])
        if len(tensors) != heads:
            raise ShapeMismatch(f"{tensors[0].name} and its siblings are {len(tensors)} tensors, expected {heads}")
        for tensor in tensors:
            _same(reshaped(tensor, tensor.shape[-1:]), shape)
        return Computed((heads, *shape), lambda: np.stack([tensor.to_float32().reshape(shape) for tensor in tensors]), tensors)

    return transform


def plus_first_row(tensors, part, shape):
    """A table, with the first row of another added to all of its rows (ERNIE's kind of task, which nobody names)."""
    table, other = tensors
    _same(table, shape)
    return Computed(shape, lambda: table.to_float32() + other.to_float32(slice(0, 1)), tensors)


def layer_normed(eps):
    """A table and the weight and bias of the LayerNorm that always stands behind it (DeBERTa's relative positions)."""

    def transform(tensors, part, shape):
        table, weight, bias = tensors
        _same(table, shape)
        return Computed(shape, lambda: layer_norm(table.to_float32(), weight.to_float32(), bias.to_float32(), eps), tensors)

    return transform


def made(make):
    """A tensor no file holds: make(shape) returns its values."""

    def transform(tensors, part, shape):
        return Computed(shape, lambda: make(shape))

    return transform


def one_more_row(value):
    """A row of `value` behind those that are stored, or behind zeros where no file holds the tensor."""

    def transform(tensors, part, shape):
        count = prod(shape[1:])
        for tensor in tensors:
            if prod(tensor.shape) != (shape[0] - 1) * count:
                _same(tensor, (shape[0] - 1, *shape[1:]))

        def make():
            rows = np.full((shape[0], count), value, np.float32)
            rows[:-1] = tensors[0].to_float32().reshape(-1, count) if tensors else 0
            return rows

        return Computed(shape, make, tensors)

    return transform


ones = made(lambda shape: np.ones(shape, np.float32))


def interleaved_pairs(heads):
    """Undo the row order in which GGUF keeps the queries and keys of LLaMA: pairs (2i, 2i + 1) back to (i, i + head_dim / 2)."""

    def order(total):
        if total % (2 * heads):
            return NO_ROWS
        head_dim = total // heads
        within = np.arange(head_dim).reshape(head_dim // 2, 2).T.ravel()
        return (np.arange(heads)[:, None] * head_dim + within).ravel()

    return rows(order)


def heads_of(offset, size, stride):
    """Rows `offset` to `offset + size` of every group of `stride` rows: one of queries, keys, values fused head by head."""

    def select(total):
        # A group that does not fit must not be spelled out: its size comes from settings and may be anything.
        if total % stride:
            return NO_ROWS
        return (np.arange(total // stride)[:, None] * stride + offset + np.arange(size)).ravel()

    return rows(select)
