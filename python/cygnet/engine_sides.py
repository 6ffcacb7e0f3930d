"""One side of an engine (encoder or decoder): tokens become rows of its tables, batches become passes, heads become stacks without layers."""

from __future__ import annotations

import os

import numpy as np

from cygnet._core._cache import BLOCK_TOKENS
from cygnet._core._ends import gather_ids
from cygnet._core._stack import Stack
from cygnet.architectures.spec import Pool, PositionTable
from cygnet.errors import OptionError
from cygnet.packing import add_head
from cygnet.position_tables import VARIANTS

CACHE_DTYPES = ("auto", "float32", "float16")
PASS_TOKENS = 512  # rows of a pass over cached sequences: longer prompts go in pieces, so that buffers stay small


class Side:
    """Encoder or decoder: its stack, what runs it, and how tokens become rows of its tables."""

    def __init__(self, runner, tables, stack, spec):
        self.runner, self.tables, self.stack = runner, tables, stack
        self.positions = spec.embedding.positions
        self.type_count = spec.embedding.type_count

    def ids(self, batch, counts):
        """All tokens in one int32 array, checked."""
        flat = np.empty(sum(counts), np.int32)
        gather_ids(batch, self.stack.token_count, flat)
        return flat

    def table_rows(self, flat, counts, starts):
        """Row of the position table of each token, or None without such a table."""
        positions = self.positions
        if positions is None or positions.kind is PositionTable.NONE:
            return None
        if len(counts) == len(flat) and max(counts, default=1) == 1 and positions.padding_id is None:
            return np.array(starts, np.int32) + np.int32(positions.offset)
        rows = np.empty(len(flat), np.int32)
        end = 0
        for count, start in zip(counts, starts, strict=True):
            part = slice(end, end + count)
            if positions.padding_id is None:
                rows[part] = np.arange(start + positions.offset, start + positions.offset + count)
            else:
                real = flat[part] != positions.padding_id
                rows[part] = np.where(real, np.cumsum(real) - 1 + start + positions.offset, positions.padding_row)
            end += count
        return rows

    def type_ids(self, type_ids, counts):
        """Token types in one int32 array, zeros by default, or None without such a table."""
        if not self.type_count:
            return None
        flat = np.zeros(sum(counts), np.int32)
        if type_ids is not None and len(flat):
            # An empty list makes an array of floats, integers beyond 64 bits one of objects.
            rows = [np.asarray(kinds) for kinds in type_ids if len(kinds)]
            if any(row.dtype.kind not in "iu" or row.min() < 0 or row.max() >= self.type_count for row in rows):
                raise OptionError(f"token types must be whole numbers from 0 to {self.type_count - 1}")
            flat[:] = np.concatenate(rows)
        return flat


def pool(hidden, offsets, kind):
    """The rows of each sequence that a head sees: all, the first, the last, their mean, or the first and the mean of the others."""
    if kind is Pool.ALL:
        return hidden
    starts, ends = offsets[:-1], offsets[1:]
    if (starts == ends).any():
        raise OptionError("a sequence without tokens has no pooled row")
    if kind is Pool.FIRST:
        return hidden[starts]
    if kind is Pool.LAST:
        return hidden[ends - 1]
    if kind is Pool.FIRST_AND_MEAN:
        return np.stack([np.concatenate([hidden[a], hidden[a + 1 : b].mean(0)]) for a, b in zip(starts, ends, strict=True)])
    return np.stack([hidden[start:end].mean(0) for start, end in zip(starts, ends, strict=True)]) if len(starts) else hidden[:0]


def pooled_width(width, kind):
    """Features of a pooled row."""
    return 2 * width if kind is Pool.FIRST_AND_MEAN else width


def passes(batch, wanted, tables):
    """Cuts a batch into passes of at most PASS_TOKENS rows: lists of (sequence, ids, rows wanted from its end)."""
    if len(batch) == 1 and len(batch[0][1]) <= PASS_TOKENS:
        yield [(*batch[0], wanted[0])]
        return
    piece, room, totals = [], PASS_TOKENS, []
    for (sequence, ids), want in zip(batch, wanted, strict=True):
        at = 0
        while at < len(ids):
            part = ids[at : at + room]
            total = sequence.announced
            if piece and tables.distinct([*totals, total]) >= VARIANTS:
                yield piece
                piece, room, totals = [], PASS_TOKENS, []
                continue
            at += len(part)
            piece.append((sequence, part, max(0, min(len(part), want - (len(ids) - at)))))
            totals.append(total)
            room -= len(part)
            if room == 0:
                yield piece
                piece, room, totals = [], PASS_TOKENS, []
    if piece:
        yield piece


def cut_patches(image, patches):
    """The squares of an image, left to right and top to bottom, each a row of its channels one after the other."""
    image, size, channels = np.asarray(image, np.float32), patches.patch_size, patches.channels
    if image.shape != (channels, patches.image_size, patches.image_size):
        raise OptionError(f"an image of shape {image.shape}; this model takes {(channels, patches.image_size, patches.image_size)}")
    across = patches.image_size // size
    return np.ascontiguousarray(image.reshape(channels, across, size, across, size).transpose(1, 3, 0, 2, 4).reshape(across * across, -1))


def block_limit(cache_bytes, block_bytes):
    """How many blocks of key/value memory there may be."""
    if cache_bytes < block_bytes:
        raise OptionError(f"cache_bytes={cache_bytes} holds less than one block of {block_bytes} bytes ({BLOCK_TOKENS} tokens)")
    return min(cache_bytes // block_bytes, 1 << 30)


def machine_memory():
    """Bytes of memory of the machine, or a modest guess where it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def head_stack(packer, head, width, embedding_name):
    """A stack without layers that runs a head on given rows."""
    stack = Stack(width, 0, 0)
    stack.embedding()
    stack.finish()
    add_head(packer, stack, head, embedding_name)
    return stack


def projection_stack(weight):
    """A stack without layers that is one product."""
    stack = Stack(weight.k, 0, 0)
    stack.embedding()
    stack.finish()
    stack.head([(weight, 0, None)])
    return stack


def token_costs(stack, logits):
    """Multiply-adds of one token outside of attention's scores and sums, of these for each key, and of so many logits."""
    body = a_key = 0
    for layer in stack.layers:
        ffn = layer.ffn
        experts = ffn.experts.top_k if ffn.experts is not None else 1
        body += stack.hidden_size * ffn.hidden_size * (3 if ffn.gated else 2) * experts
        for attention in (layer.attention, layer.cross):
            if attention is not None:
                body += 2 * stack.hidden_size * (attention.heads + attention.kv_heads) * attention.head_dim
        a_key += 2 * layer.attention.heads * layer.attention.head_dim
    return body, a_key, stack.hidden_size * logits


def cache_form(asked, weight_kinds):
    """ "float32" or "float16": how keys and values are kept; see docs/decisions/cache-dtype.md."""
    if asked not in CACHE_DTYPES:
        raise OptionError(f"cache_dtype={asked!r} is not known: {', '.join(CACHE_DTYPES)}")
    if asked != "auto":
        return asked
    exact = any("float32" in kinds for name, kinds in weight_kinds.items() if name.startswith("decoder.") and ".embed." not in name)
    return "float32" if exact else "float16"
