"""The tables of positions that a model's attention reads: rotary angles and score biases, grown to the longest sequence met so far.

Layers refer to a table by number. Rotary settings that depend on a sequence's length (dynamic, longrope) have variants of all tables; a sequence
names its variant.
"""

from __future__ import annotations

import numpy as np

from cygnet.errors import UnsupportedModel
from cygnet.reference.positions import rope_angles, rope_frequencies, t5_buckets
from cygnet.reference.quantization import from_bfloat16, to_bfloat16

VARIANTS = 8  # of ROPES tables each
ROPES = 8


class PositionTables:
    """Tables of one stack.

    Parameters
    ----------
    tables : Tables
        Where the compiled passes look them up.
    """

    def __init__(self, tables):
        self._tables = tables
        self._ropes, self._biases = [], []
        self._length = 0
        self._variants = {}  # length of a sequence -> variant, for lengths that have tables of their own

    def rope(self, rotary):
        """The number of a Rotary's table."""
        return self._number(self._ropes, rotary, ROPES, "rotary settings")

    def bias(self, positions, weight, scale):
        """The number of the score bias of an Alibi, or of a Relative whose table (buckets, heads) is `weight`."""
        for number, (known, _, known_scale) in enumerate(self._biases):
            if known == positions and known_scale == scale:
                return number
        self._biases.append((positions, weight, scale))
        return len(self._biases) - 1

    def _number(self, known, wanted, limit, what):
        if wanted not in known:
            if len(known) == limit:
                raise UnsupportedModel(f"more than {limit} different {what} in one model")
            known.append(wanted)
        return known.index(wanted)

    def prepare(self, totals):
        """Makes the tables reach sequences of these total lengths.

        Returns
        -------
        (sequences,) int32 or None
            First rotary table of each sequence; None where all use the same.
        """
        longest = max(totals, default=0)
        if longest > self._length:
            self._length = max(longest, 2 * self._length, 128)
            self._variants.clear()
            self._fill(0, 0)
            for number, (positions, weight, scale) in enumerate(self._biases):
                self._tables.bias(number, *self._bias(positions, weight, scale))
        keys = [self._variant_key(total) for total in totals]
        if not any(keys):
            return None
        return np.array([self._variant(key) * ROPES for key in keys], np.int32)

    def _variant_key(self, total):
        """0 for the common tables, else what the tables of a sequence of that length depend on."""
        for rotary in self._ropes:
            scaling = rotary.scaling
            if scaling is None or scaling.kind not in ("dynamic", "longrope"):
                continue
            if total > (scaling.original_max_positions or rotary.max_positions):
                return total if scaling.kind == "dynamic" else self._length
        return 0

    def _variant(self, key):
        if key == 0:
            return 0
        if key not in self._variants:
            if len(self._variants) == VARIANTS - 1:
                self._variants.clear()
            number = len(self._variants) + 1
            self._variants[key] = number
            self._fill(number, key)
        return self._variants[key]

    def distinct(self, totals):
        """How many variants a pass over these sequences needs; at most VARIANTS - 1 go together."""
        return len({self._variant_key(total) for total in totals})

    def _fill(self, variant, sequence_length):
        positions = np.arange(self._length)
        for number, rotary in enumerate(self._ropes):
            frequencies, factor = rope_frequencies(
                rotary.dim, rotary.theta, rotary.scaling, max_positions=rotary.max_positions, sequence_length=sequence_length
            )
            cos, sin = rope_angles(positions, frequencies, factor)
            self._tables.rope(variant * ROPES + number, rotary.interleaved, np.ascontiguousarray(cos), np.ascontiguousarray(sin))

    def _bias(self, positions, weight, scale):
        """(by distance, by key) of one score bias."""
        if weight is not None:
            distance = np.arange(-self._length, self._length + 1)
            buckets = t5_buckets(
                distance, bidirectional=positions.bidirectional, num_buckets=positions.buckets, max_distance=positions.max_distance
            )
            return np.ascontiguousarray(weight[buckets].T, np.float32), None
        slopes, key = np.asarray(positions.slopes, np.float32)[:, None], np.arange(self._length, dtype=np.float32)
        if positions.bfloat16:
            bias = _to_bfloat16(_to_bfloat16(slopes) * key)
        else:
            bias = slopes * key
        return None, np.ascontiguousarray(bias * np.float32(scale if positions.scaled else 1.0))


def _to_bfloat16(x):
    return from_bfloat16(to_bfloat16(x))
