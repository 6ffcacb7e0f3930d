"""One stored tensor, not yet read: what every format hands on and every loader takes."""

from math import prod

import numpy as np

from cygnet._core._dequantize import dequantize
from cygnet.errors import FormatError, OptionError
from cygnet.formats.dtypes import PLAIN_TYPES, widen
from cygnet.formats.quant_types import BLOCK_TYPES

# NumPy 1.26 has no arrays of more dimensions.
MAX_RANK = 32


def stored_bytes(dtype, shape):
    """Bytes that a tensor takes in its file.

    Parameters
    ----------
    dtype : str
        A plain type or a GGUF block type; the last dimension of a block type is a multiple of its block.
    shape : tuple of int

    Returns
    -------
    int

    Examples
    --------
    >>> stored_bytes("BF16", (3, 4)), stored_bytes("Q4_0", (2, 64))
    (24, 72)
    """
    if dtype in PLAIN_TYPES:
        return prod(shape) * PLAIN_TYPES[dtype].itemsize
    block = BLOCK_TYPES[dtype]
    return prod(shape) // block.block_size * block.block_bytes


class Tensor:
    """A named tensor of a weights file: type and shape now, bytes when asked for.

    Parameters
    ----------
    name : str
    dtype : str
        ``"F32"``, ``"BF16"``, ``"I64"`` ... (`cygnet.formats.dtypes`) or a GGUF block type such as ``"Q4_K"`` (`cygnet.formats.quant_types`).
    shape : tuple of int
        Row-major, as NumPy and PyTorch have it; a matrix of a GGUF file is (out, in) as well.
    read : callable
        Returns the bytes as a (nbytes,) uint8 array, row-major, little-endian.
    release : callable, optional
        Tells the kernel that the pages behind `read` are not needed for now.

    Examples
    --------
    >>> tensor = Tensor("w", "BF16", (1, 2), lambda: np.array([0x80, 0x3F, 0x20, 0xC0], np.uint8))
    >>> tensor.to_float32()
    array([[ 1. , -2.5]], dtype=float32)
    """

    __slots__ = ("name", "dtype", "shape", "nbytes", "_read", "_release")

    def __init__(self, name, dtype, shape, read, release=None):
        self.name = name
        self.dtype = dtype
        self.shape = tuple(shape)
        self.nbytes = stored_bytes(dtype, self.shape)
        self._read = read
        self._release = release

    def __repr__(self):
        return f"Tensor({self.name!r}, {self.dtype}, {self.shape})"

    @property
    def is_block_type(self):
        """Whether the weights are GGUF blocks instead of plain elements."""
        return self.dtype in BLOCK_TYPES

    def raw(self):
        """The stored bytes.

        Returns
        -------
        (nbytes,) uint8
            A read-only view of the mapped file where the format allows it; the view keeps the mapping alive.
        """
        return self._read()

    def raw_rows(self, start, stop):
        """The stored bytes of the entries `start` to `stop` of the first axis, whole rows of a matrix.

        Returns
        -------
        (n,) uint8
            A view, as `raw` gives it.

        Raises
        ------
        IndexError
            If the range does not lie inside the first axis.
        """
        rows = self.shape[0] if self.shape else 0
        if not 0 <= start <= stop <= rows:
            raise IndexError(f"tensor {self.name!r} has {rows} rows, not {start}:{stop}")
        row_bytes = stored_bytes(self.dtype, self.shape[1:])
        if self.is_block_type and len(self.shape) == 1:
            raise IndexError(f"tensor {self.name!r} is a single row of {self.dtype} blocks and cannot be cut into rows")
        return self.raw()[start * row_bytes : stop * row_bytes]

    def to_float32(self, rows=None):
        """The values as float32.

        Exact for every type of 32 bits and fewer (NaN stays NaN); F64 and wide integers are rounded to nearest; block types are dequantised.

        Parameters
        ----------
        rows : slice, optional
            Part of the first axis, step 1; everything by default.

        Returns
        -------
        shape float32
            With `rows`, its first axis is that long. May be a read-only view of the file.

        Raises
        ------
        FormatError
            If the type is complex.
        """
        if self.dtype == "C64":
            raise FormatError(f"tensor {self.name!r} is complex (C64) and has no float32 form; use numpy()")
        if rows is None:
            raw, shape = self.raw(), self.shape
        else:
            if not isinstance(rows, slice):
                raise OptionError(f"tensor {self.name!r}: rows must be a slice of the first axis, not {rows!r:.80}")
            start, stop, step = rows.indices(self.shape[0] if self.shape else 0)
            if step != 1:
                raise IndexError(f"tensor {self.name!r}: rows are read with step 1, not {step}")
            stop = max(start, stop)
            raw, shape = self.raw_rows(start, stop), (stop - start, *self.shape[1:])
        if self.is_block_type:
            return dequantize(self.dtype, raw).reshape(shape)
        return widen(self.dtype, raw).reshape(shape)

    def numpy(self):
        """The tensor in its own type.

        Returns
        -------
        shape array
            A read-only view of the file where it is aligned there, else a copy.

        Raises
        ------
        FormatError
            If NumPy has no such type (BF16, 8-bit floats, block types).
        """
        plain = PLAIN_TYPES.get(self.dtype)
        if plain is None or plain.numpy is None:
            raise FormatError(f"tensor {self.name!r} is {self.dtype}, which NumPy does not have; use to_float32() or raw()")
        return np.require(self.raw().view(plain.numpy), requirements="A").reshape(self.shape)

    def release(self):
        """Tell the kernel that the mapped pages are not needed for now; the tensor stays readable."""
        if self._release is not None:
            self._release()
