"""The tables of positions that a model's attention reads: rotary angles and score biases, grown to the longest sequence met so far.

Layers refer to a table by number. Rotary settings that depend on a sequence's length (dynamic, longrope) have variants of all tables; a sequence
names its variant.
"""

from __future__ import annotations

import numpy as np

from cygnet.errors import OptionError, UnsupportedModel
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
        self._scaled = []  # those of the rotary settings that depend on a sequence's length
        self._variants = {}  # length of a sequence -> variant, for lengths that have tables of their own

    def rope(self, rotary):
        """The number of a Rotary's table."""
        number = self._number(self._ropes, rotary, ROPES, "rotary settings")
        self._scaled = [r for r in self._ropes if r.scaling is not None and r.scaling.kind in ("dynamic", "longrope")]
        return number

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
            self._grow(max(longest, 2 * self._length, 128))
        if not self._scaled:
            return None
        keys = [self._variant_key(total) for total in totals]
        if not any(keys):
            return None
        self._make_variants({key for key in keys if key})
        return np.array([self._variants.get(key, 0) * ROPES for key in keys], np.int32)

    def _grow(self, length):
        """All common tables for sequences of `length`; until each of them is there, the shorter ones hold and so does the length that is known."""
        self._fill(0, 0, length)
        for number, (positions, weight, scale) in enumerate(self._biases):
            self._tables.bias(number, *_bias(positions, weight, scale, length))
        self._variants.clear()
        self._length = length

    def variant(self, total):
        """Which tables a text of that length is read with: 0 for the common ones, 1 for those of all longer texts, None for its own."""
        scaled = [r.scaling.kind for r in self._scaled if total > (r.scaling.original_max_positions or r.max_positions)]
        return None if "dynamic" in scaled else int(bool(scaled))

    def _variant_key(self, total):
        """0 for the common tables, else what the tables of a sequence of that length depend on."""
        for rotary in self._scaled:
            scaling = rotary.scaling
            if total > (scaling.original_max_positions or rotary.max_positions):
                return total if scaling.kind == "dynamic" else self._length
        return 0

    def _make_variants(self, wanted):
        """Tables for all of these lengths; a variant that the same pass reads is never written over."""
        if len(wanted) >= VARIANTS:
            raise OptionError(f"sequences of {len(wanted)} lengths with position tables of their own; at most {VARIANTS - 1} go in one pass")
        missing = sorted(wanted - self._variants.keys())
        if len(self._variants) + len(missing) >= VARIANTS:
            self._variants.clear()
            missing = sorted(wanted)
        for key in missing:
            number = len(self._variants) + 1
            self._fill(number, key, self._length)
            self._variants[key] = number

    def distinct(self, totals):
        """How many variants a pass over these sequences needs; at most VARIANTS - 1 go together."""
        return len({self._variant_key(total) for total in totals})

    def _fill(self, variant, sequence_length, length):
        positions = np.arange(length)
        for number, rotary in enumerate(self._ropes):
            frequencies, factor = rope_frequencies(
                rotary.dim, rotary.theta, rotary.scaling, max_positions=rotary.max_positions, sequence_length=sequence_length
            )
            cos, sin = rope_angles(positions, frequencies, factor)
            self._tables.rope(variant * ROPES + number, rotary.interleaved, np.ascontiguousarray(cos), np.ascontiguousarray(sin))


def _bias(positions, weight, scale, length):
    """(by distance, by key) of one score bias."""
    if weight is not None:
        distance = np.arange(-length, length + 1)
        buckets = t5_buckets(distance, bidirectional=positions.bidirectional, num_buckets=positions.buckets, max_distance=positions.max_distance)
        return np.ascontiguousarray(weight[buckets].T, np.float32), None
    slopes, key = np.asarray(positions.slopes, np.float32)[:, None], np.arange(length, dtype=np.float32)
    if positions.bfloat16:
        bias = _to_bfloat16(_to_bfloat16(slopes) * key)
    else:
        bias = slopes * key
    return None, np.ascontiguousarray(bias * np.float32(scale if positions.scaled else 1.0))


def _to_bfloat16(x):
    return from_bfloat16(to_bfloat16(x))
