"""Recurrent units that stand in the place of self-attention, in plain NumPy."""

from __future__ import annotations

import numpy as np

from cygnet.reference import ops
from cygnet.reference.attention import linear


def ssru(x, tensors, name):
    """The simpler simple recurrent unit (Kim et al. 2019, "From Research to Production and Back").

    Parameters
    ----------
    x : (T, D) float
    tensors : dict of str to array
    name : str
        Such as "decoder.0.recurrent".

    Returns
    -------
    (T, D) float
        relu(c_t), with c_t = f_t c_(t-1) + (1 - f_t) input(x_t), f_t = sigmoid(forget(x_t)) and c_(-1) = 0.
    """
    forget = ops.sigmoid(linear(x, tensors, f"{name}.forget"))
    new = linear(x, tensors, f"{name}.input")
    state, result = np.zeros(x.shape[1], x.dtype), np.empty_like(x)
    for t in range(len(x)):
        state = forget[t] * state + (1 - forget[t]) * new[t]
        result[t] = np.maximum(state, 0)
    return result
