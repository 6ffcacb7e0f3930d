"""An opened model file or folder: tensors by name, and what the file says about itself."""

from collections.abc import Mapping


class WeightFile(Mapping):
    """Tensors by name, in the order of the file; a context manager that closes its files.

    Parameters
    ----------
    kind : str
        ``"safetensors"``, ``"gguf"``, ``"torch"``, ``"npz"``, ``"marian"``, ``"flax"`` or ``"keras"``.
    files : list of Path
        Every file that holds tensors.
    tensors : dict of str to Tensor
    metadata : Mapping
        GGUF keys and values, the ``__metadata__`` of safetensors, or the settings of a Marian model; empty where the format has none.
    closers : iterable of callable
        Called by `close`.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from cygnet.formats import open_weights
    >>> from cygnet.formats.safetensors import write_safetensors
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> write_safetensors(path, {"w": np.eye(2, dtype=np.float32)})
    >>> with open_weights(path) as weights:
    ...     print(list(weights), weights["w"].to_float32().tolist())
    ['w'] [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, kind, files, tensors, metadata=None, closers=()):
        self.kind = kind
        self.files = list(files)
        self.metadata = {} if metadata is None else metadata
        self._tensors = tensors
        self._closers = list(closers)

    def __getitem__(self, name):
        return self._tensors[name]

    def __iter__(self):
        return iter(self._tensors)

    def __len__(self):
        return len(self._tensors)

    def __repr__(self):
        return f"<{self.kind} weights: {len(self)} tensors in {', '.join(str(path) for path in self.files)}>"

    @property
    def nbytes(self):
        """Bytes of all tensors as stored."""
        return sum(tensor.nbytes for tensor in self.values())

    def close(self):
        """Close the files; tensors can no longer be read, arrays already taken stay valid."""
        while self._closers:
            self._closers.pop()()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
