"""From the hidden states of a text's tokens to one vector: the pooling modes of Sentence-Transformers (Reimers & Gurevych 2019).

Every function takes the (T, D) float32 rows of one sequence, T >= 1, so a text's vector cannot depend on its neighbours in a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cygnet.errors import UnsupportedModel


def cls(rows):
    """The first token."""
    return rows[0]


def lasttoken(rows):
    """The last token."""
    return rows[-1]


def maximum(rows):
    """The largest value of each feature."""
    return rows.max(axis=0)


def mean(rows):
    """The mean over tokens."""
    return rows.mean(axis=0, dtype=np.float32)


def mean_sqrt_len(rows):
    """The sum over tokens divided by the square root of their number."""
    return rows.sum(axis=0, dtype=np.float32) / np.float32(np.sqrt(len(rows)))


def weightedmean(rows):
    """The mean with weights 1, 2, ... T: later tokens, which have seen more in a causal model, count more."""
    weights = np.arange(1, len(rows) + 1, dtype=np.float32)
    return weights @ rows / weights.sum()


# In the order in which several modes of one model are joined.
MODES: dict[str, Callable] = {
    "cls": cls,
    "max": maximum,
    "mean": mean,
    "mean_sqrt_len": mean_sqrt_len,
    "weightedmean": weightedmean,
    "lasttoken": lasttoken,
}


def check_modes(modes: Sequence[str], where: str) -> tuple[str, ...]:
    """The modes in joining order.

    Raises
    ------
    UnsupportedModel
        A mode is not known, or there is none.
    """
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes:
        raise UnsupportedModel(f"{where}: pooling {', '.join(unknown) or 'without a mode'} is not known; known are {', '.join(MODES)}")
    return tuple(mode for mode in MODES if mode in modes)


def pool(hidden, offsets, modes: Sequence[str], skip: Sequence[int] | None = None):
    """One vector a sequence.

    Parameters
    ----------
    hidden : (T, D) float32
        The rows of all sequences, one after another.
    offsets : (n + 1,) int
        Sequence i owns the rows offsets[i] to offsets[i + 1].
    modes : sequence of str
        Several modes give their vectors joined, in the order of MODES.
    skip : sequence of int, optional
        How many rows at the start of each sequence stay out.

    Returns
    -------
    (n, D * len(modes)) float32
        Zeros for a sequence without rows.
    """
    width = hidden.shape[1]
    vectors = np.zeros((len(offsets) - 1, width * len(modes)), np.float32)
    for i, vector in enumerate(vectors):
        rows = hidden[offsets[i] + (skip[i] if skip else 0) : offsets[i + 1]]
        if len(rows):
            for j, mode in enumerate(modes):
                vector[j * width : (j + 1) * width] = MODES[mode](rows)
    return vectors


def normalize(vectors):
    """Rows divided by their L2 norm; zero rows stay zero. Shape (n, d) float32."""
    norms = np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64))[:, None]
    return (vectors / np.maximum(norms, 1e-12)).astype(np.float32)
