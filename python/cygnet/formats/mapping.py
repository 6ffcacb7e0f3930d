"""A file mapped read-only: bounds-checked views that cost nothing until they are touched."""

import io
import mmap
from pathlib import Path

import numpy as np

from cygnet.errors import FormatError, ModelNotFound
from cygnet.files import open_regular


class Mapping:
    """A whole file as bytes in memory, paged in by the kernel on first touch.

    While mapped, the file may be deleted or replaced by renaming another over it (not on Windows); it must not be shortened in place.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    ModelNotFound
        If there is no such file.
    FormatError
        If it cannot be opened or mapped.
    """

    def __init__(self, path):
        self.path = Path(path)
        try:
            with open_regular(self.path) as file:
                self.size = file.seek(0, 2)
                # An empty file cannot be mapped; it has no bytes to view either.
                self._map = mmap.mmap(file.fileno(), self.size, access=mmap.ACCESS_READ) if self.size else None
        except FileNotFoundError:
            raise ModelNotFound(f"{self.path}: no such file") from None
        except (OSError, ValueError) as error:
            raise error if isinstance(error, FormatError) else FormatError(f"{self.path}: cannot be read: {error}") from None
        self._bytes = np.frombuffer(self._map, np.uint8) if self._map else np.empty(0, np.uint8)

    def view(self, offset, nbytes):
        """The bytes [offset, offset + nbytes) as a read-only (nbytes,) uint8 view; FormatError outside the file or after `close`."""
        if self._bytes is None:
            raise FormatError(f"{self.path}: the file is closed")
        if offset < 0 or nbytes < 0 or offset + nbytes > self.size:
            raise FormatError(f"{self.path}: bytes {offset} to {offset + nbytes} lie outside the file of {self.size} bytes")
        return self._bytes[offset : offset + nbytes]

    def stream(self):
        """The file as a binary stream from its start; one at a time."""
        if self._map is None:
            return io.BytesIO()
        self._map.seek(0)
        return self._map

    def release(self, offset, nbytes):
        """Drop the mapped pages of a range from this process; they come back from the file when touched again."""
        if self._bytes is None or not nbytes or not hasattr(mmap, "MADV_DONTNEED"):
            return
        start = offset - offset % mmap.PAGESIZE
        self._map.madvise(mmap.MADV_DONTNEED, start, offset + nbytes - start)

    def close(self):
        """Give the mapping back; views that are still alive keep it until they go."""
        self._bytes = None
        if self._map is not None:
            try:
                self._map.close()
            except BufferError:
                pass


def lies_in_file(array):
    """Whether an array is a view of a mapped file, which costs no memory of its own."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array.obj if isinstance(array, memoryview) else array, mmap.mmap)
