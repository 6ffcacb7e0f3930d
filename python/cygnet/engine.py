"""The engine: a ModelSpec and its tensors, packed, with the memory of sequences; the only thing that computes.

Whatever is to be fed next is decided elsewhere; here a ragged batch goes in and hidden states or logits come out, the same bits whatever else is in
the batch, however many threads work, and whether a prefix was cached or not.
"""

from __future__ import annotations

from functools import wraps

import numpy as np

from cygnet._core._cache import BLOCK_TOKENS, BlockPool, Sequence
from cygnet._core._forward import Runner
from cygnet.architectures.spec import Disentangled, ModelKind, PositionTable, Task
from cygnet.architectures.tokens import shifted_right, until_last_end
from cygnet.background import Background
from cygnet.convolved import Convolved
from cygnet.cpu_count import thread_count
from cygnet.engine_sides import (
    Side,
    block_limit,
    cache_form,
    cut_patches,
    head_stack,
    machine_memory,
    passes,
    pool,
    pooled_width,
    projection_stack,
    token_costs,
)
from cygnet.errors import CacheFull, ContextOverflow, OptionError, OutOfMemory
from cygnet.locks import ForkedLock
from cygnet.packing import DISENTANGLED_REACH, Packer, StackBuilder, plan_heads
from cygnet.position_tables import PositionTables

DEFAULT_CACHE_BYTES = 4 << 30
# The head of these belongs to the decoder: forward() runs it.
DECODER_TASKS = (Task.CAUSAL_LM, Task.SEQ2SEQ, Task.HIDDEN_STATES)


def _tells_of_memory(work):
    """A method whose MemoryError, wherever it comes from, is an OutOfMemory that says what to do."""

    @wraps(work)
    def checked(*args, **kwargs):
        try:
            return work(*args, **kwargs)
        except OutOfMemory:
            raise
        except MemoryError as error:
            said = f" ({error})" if str(error) else ""
            raise OutOfMemory(f"no memory is left for the model's work{said}: run fewer or shorter texts at once") from error

    return checked


class Engine:
    """A model that computes.

    Parameters
    ----------
    spec : ModelSpec
    views : dict of str to WeightView
        The tensors by the names of cygnet.architectures.spec.
    weights : str
        "auto" keeps what the file holds; "float32", "float16", "bfloat16", "int8", "int4" convert.
    threads : int, optional
        By default what the process may use.
    max_context : int, optional
        Longest sequence, at most what the model allows (the default).
    cache_bytes : int, optional
        Limit of the key/value memory; by default 4 GiB or half of the machine's memory, if that is less. Memory is taken as it is needed.
    cache_dtype : str
        "float32" or "float16": how a decoder keeps keys and values. "auto" is float32 where its attention has float32 weights, else float16.
    wait : bool
        False returns while the weights are still being packed by a thread of their own: `finish` must be called before anything is computed.

    Raises
    ------
    OptionError
        For values out of range.

    Examples
    --------
    >>> from cygnet.architectures.registry import load_spec
    >>> loaded = load_spec("folder")  # doctest: +SKIP
    >>> engine = Engine(loaded.spec, loaded.weights)  # doctest: +SKIP
    >>> engine.forward([(engine.sequence(), [1, 2, 3])]).shape  # doctest: +SKIP
    (1, 32000)
    """

    block_tokens = BLOCK_TOKENS

    @_tells_of_memory
    def __init__(self, spec, views, *, weights="auto", threads=None, max_context=None, cache_bytes=None, cache_dtype="auto", wait=True):
        self.spec = spec
        self.threads = thread_count(threads)
        self.max_context = self._context(max_context)
        self._lock = ForkedLock()
        self._packing = Background(self._build(views, weights).finish)
        if wait:
            self.finish()
        self._pools(cache_bytes, cache_dtype)

    @_tells_of_memory
    def finish(self):
        """Waits until the weights are packed."""
        self._packing.result()

    def _context(self, asked):
        spec, limits = self.spec, [self.spec.max_positions]
        for stack in (spec.encoder, spec.decoder):
            if stack is None:
                continue
            positions = stack.embedding.positions
            if positions is not None and positions.kind is not PositionTable.NONE and stack.embedding.patches is None:
                limits.append(positions.count - positions.offset)
            if any(isinstance(layer.attention.positions, Disentangled) for layer in stack.layers):
                limits.append(DISENTANGLED_REACH)
        limit = min((x for x in limits if x is not None), default=None)
        if asked is None:
            return limit
        if asked < 1 or (limit is not None and asked > limit):
            raise OptionError(f"max_context={asked}: this model allows 1 to {limit if limit is not None else 'any number of'} tokens")
        return asked

    def _build(self, views, weights):
        """Describes the model to the compiled passes; the Packer that is returned has weights left to pack."""
        spec = self.spec
        packer = Packer(spec, views, weights, self.threads)
        builders = {}
        for name in ("encoder", "decoder"):
            if getattr(spec, name) is not None:
                runner = Runner(self.threads)
                tables = PositionTables(runner.tables)
                builders[name] = runner, tables, StackBuilder(packer, name, tables)
        plan_heads(packer, next(iter(builders.values()))[2]._embedding_name())
        packer.allocate()
        last = "decoder" if spec.decoder is not None else "encoder"
        in_stack = spec.decoder is not None and spec.head is not None and spec.task in DECODER_TASKS
        self._sides, self._convolved = {}, None
        for name, (runner, tables, builder) in builders.items():
            if builder.stack.convolution is not None:
                self._convolved = Convolved(builder)
                stack = self._convolved.embedding
            else:
                stack = builder.build(spec.head if in_stack and name == last else None)
            self._sides[name] = Side(runner, tables, stack, getattr(spec, name))
        embedding = builders[last][2]._embedding_name()
        self._heads = {}
        for which, head in (("head", None if in_stack else spec.head), ("pooler", spec.pooler)):
            if head is not None:
                self._heads[which] = head, head_stack(packer, head, pooled_width(self._sides[last].stack.output_width, head.pool), embedding)
        self._source_weights = builders["decoder"][2].source_weights() if spec.kind is ModelKind.ENCODER_DECODER else None
        self._patches = None
        if "encoder.embed.patch" in packer.plan:
            small = (packer.array(f"encoder.embed.{name}") for name in ("class", "position.weight"))
            self._patches = projection_stack(packer.weight("encoder.embed.patch")), *small
        self.weight_bytes = packer.arena.bytes_used
        self.weight_kinds = {key: weight.kinds for key, weight in packer.packed.items()}
        return packer

    def _pools(self, cache_bytes, cache_dtype):
        form = cache_form(cache_dtype, self.weight_kinds)
        self._pool = self._source_pool = self.cache_dtype = None
        if "decoder" not in self._sides:
            return
        if cache_bytes is None:
            cache_bytes = min(DEFAULT_CACHE_BYTES, machine_memory() // 2)
        side = self._sides["decoder"]
        self._costs = token_costs(self.spec.decoder, side.stack.logit_count)
        self.cache_dtype = form
        side.runner.keep_half(self.cache_dtype == "float16")
        own = max(side.runner.block_bytes(side.stack), 1)
        self._pool = BlockPool(own, block_limit(cache_bytes, own))
        cross = side.runner.block_bytes(side.stack, True)
        if cross:
            self._source_pool = BlockPool(cross, block_limit(cache_bytes, cross))

    # ---- what is known

    @property
    def vocab_size(self):
        """Columns of the logits, or rows of the token embedding where there are none."""
        return self._sides["decoder" if "decoder" in self._sides else "encoder"].stack.logit_count or self.spec.vocab_size

    @property
    def blocks_total(self):
        """Blocks of key/value memory that can ever be taken."""
        return self._pool.limit if self._pool is not None else 0

    @property
    def blocks_free(self):
        """Blocks of key/value memory that can still be taken."""
        return self._pool.free if self._pool is not None else 0

    @property
    def blocks_used(self):
        """Blocks of key/value memory in use."""
        return self._pool.used if self._pool is not None else 0

    def variant(self, length):
        """Which position tables a text of that length is read with: its keys serve texts of the same variant only. None: no other text."""
        return self._sides["decoder"].tables.variant(length)

    def token_cost(self, keys, logits):
        """Multiply-adds of one decoder token that looks at `keys` keys, with or without logits."""
        body, a_key, head = self._costs
        return body + keys * a_key + (head if logits else 0)

    def blocks_needed(self, sequence, tokens):
        """Blocks that appending `tokens` tokens to a sequence would take."""
        return sequence.blocks_needed(tokens)

    # ---- sequences

    def sequence(self, source=None):
        """An empty sequence; `source` is what `encode` returned, for encoder-decoder models.

        Returns
        -------
        Sequence
            With .length, .fork(), .truncate(n) and .release().
        """
        if self._pool is None:
            raise OptionError("an encoder keeps no sequences; use hidden()")
        if (source is None) == (self._source_pool is not None):
            raise OptionError("a sequence of an encoder-decoder model needs an encoded source, and only such a one takes it")
        return Sequence(self._pool, source)

    @_tells_of_memory
    def forward(self, batch, rows="last"):
        """Appends tokens to sequences and returns logits.

        Parameters
        ----------
        batch : list of (Sequence, list of int)
            Each sequence at most once. All of it is one ragged batch.
        rows : "last", "all", "none" or list of int
            Which new positions give logits: the last of each sequence, all, none, or so many of the last ones of each.

        Returns
        -------
        (R, V) float32
            In the order of the batch.

        Raises
        ------
        ContextOverflow, CacheFull, Cancelled, OptionError
            The sequences are then as they were before.
        """
        wanted = self._wanted(batch, rows)
        with self._lock:
            side = self._sides["decoder"]
            logits = np.empty((sum(wanted), side.stack.logit_count), np.float32)
            before = [sequence.length for sequence, _ in batch]
            for sequence, ids in batch:
                sequence.announce(sequence.length + len(ids))
            try:
                self._forward(side, batch, wanted, logits)
            except BaseException:
                for (sequence, _), length in zip(batch, before, strict=True):
                    sequence.truncate(length)
                raise
        return logits

    def _wanted(self, batch, rows):
        """How many of each sequence's new positions give logits, counted from its end."""
        if rows == "none":
            counts = [0] * len(batch)
        elif rows == "last":
            counts = [1] * len(batch)
        elif rows == "all":
            counts = [len(ids) for _, ids in batch]
        else:
            counts = [int(count) for count in rows]
            if len(counts) != len(batch):
                raise OptionError(f"{len(counts)} row counts for {len(batch)} sequences")
            if any(not 0 <= count <= len(ids) for count, (_, ids) in zip(counts, batch, strict=True)):
                raise OptionError("a row count must be from 0 to the number of new tokens")
        if any(count and not self._sides["decoder"].stack.logit_count for count in counts):
            raise OptionError("this model has no language-model head")
        for sequence, ids in batch:
            if not len(ids):
                raise OptionError("a sequence without new tokens")
            if self.max_context is not None and sequence.length + len(ids) > self.max_context:
                raise ContextOverflow(f"{sequence.length + len(ids)} tokens do not fit the context of {self.max_context}")
        if len(batch) > 1 and len({id(sequence) for sequence, _ in batch}) != len(batch):
            raise OptionError("a sequence stands twice in one batch")
        return counts

    def _forward(self, side, batch, wanted, logits):
        needed = sum(sequence.blocks_needed(len(ids)) for sequence, ids in batch)
        if needed > self._pool.free:
            raise CacheFull(
                f"{needed} blocks of {BLOCK_TOKENS} tokens are needed, {self._pool.free} of {self._pool.limit} are free; "
                "release sequences, shorten them or run fewer at once"
            )
        done = 0
        for piece in passes(batch, wanted, side.tables):
            sequences = [sequence for sequence, _, _ in piece]
            counts = [len(ids) for _, ids, _ in piece]
            flat = side.ids([ids for _, ids, _ in piece], counts)
            starts = [sequence.length for sequence in sequences]
            chosen, end = [], 0
            for (_, _, want), count in zip(piece, counts, strict=True):
                end += count
                chosen.extend(range(end - want, end))
            side.runner.run(
                side.stack,
                sequences,
                counts,
                flat,
                table_rows=side.table_rows(flat, counts, starts),
                ropes=side.tables.prepare([sequence.announced for sequence in sequences]),
                head_rows=np.array(chosen, np.int64) if chosen else None,
                logits=logits[done : done + len(chosen)] if chosen else None,
            )
            done += len(chosen)

    # ---- encoders

    @_tells_of_memory
    def hidden(self, batch, type_ids=None):
        """Hidden states of an encoder, or of a decoder read without memory.

        An encoder-decoder that classifies gives those of its decoder, which reads the text again: up to the end token where one row
        stands for the text.

        Parameters
        ----------
        batch : list of list of int, or list of (channels, height, width) float32 images
        type_ids : list of list of int, optional

        Returns
        -------
        hidden : (T, D) float32
            After the final norm; rows offsets[i]:offsets[i + 1] belong to sequence i.
        offsets : (n + 1,) int64
        """
        with self._lock:
            if "encoder" not in self._sides:
                return self._decoder_hidden(batch, [None] * len(batch))
            if self.spec.kind is ModelKind.ENCODER_DECODER and self.spec.task not in DECODER_TASKS:
                return self._reading_hidden(batch)
            return self._encoder_hidden(batch, type_ids)

    def _encoder_hidden(self, batch, type_ids=None):
        with self._lock:
            side = self._sides["encoder"]
            embedded = None
            if self._patches is not None:
                embedded, counts = self._embed_patches(side, batch)
            else:
                counts = [len(ids) for ids in batch]
                for count in counts:
                    if self.max_context is not None and count > self.max_context:
                        raise ContextOverflow(f"{count} tokens do not fit the model's {self.max_context} positions")
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            hidden = np.empty((int(offsets[-1]), side.stack.output_width), np.float32)
            flat = side.ids(batch, counts) if embedded is None else None
            full = [count for count in counts if count]
            if full and self._convolved is not None:
                rows = dict(table_rows=side.table_rows(flat, counts, [0] * len(counts)), types=side.type_ids(type_ids, counts))
                self._convolved.run(side.runner, full, flat, hidden, **rows)
            elif full:
                side.runner.run(
                    side.stack,
                    [],
                    full,
                    flat,
                    embedded=embedded,
                    table_rows=side.table_rows(flat, counts, [0] * len(counts)) if embedded is None else None,
                    types=side.type_ids(type_ids, counts),
                    ropes=side.tables.prepare(full),
                    hidden=hidden,
                )
            return hidden, offsets

    def _reading_hidden(self, batch):
        """The decoder's states as it reads each text again, shifted by one."""
        sources = self.encode(batch)
        hidden, offsets = self._decoder_hidden([shifted_right(list(ids), self.spec) for ids in batch], sources)
        for source in sources:
            source.release()
        if self.spec.task is not Task.SEQUENCE_CLASSIFICATION:
            return hidden, offsets
        kept = [until_last_end(list(ids), self.spec.tokens) for ids in batch]
        pieces = [hidden[start : start + count] for start, count in zip(offsets[:-1], kept, strict=True)]
        return np.concatenate(pieces), np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)

    def _decoder_hidden(self, batch, sources):
        side = self._sides["decoder"]
        counts = [len(ids) for ids in batch]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        hidden = np.empty((int(offsets[-1]), side.stack.output_width), np.float32)
        for i, ids in enumerate(batch):
            if len(ids):
                sequence = self.sequence(sources[i])
                if self.max_context is not None and len(ids) > self.max_context:
                    raise ContextOverflow(f"{len(ids)} tokens do not fit the context of {self.max_context}")
                flat = side.ids([ids], [len(ids)])
                side.runner.run(
                    side.stack,
                    [sequence],
                    [len(ids)],
                    flat,
                    table_rows=side.table_rows(flat, [len(ids)], [0]),
                    ropes=side.tables.prepare([len(ids)]),
                    hidden=hidden[offsets[i] : offsets[i + 1]],
                )
                sequence.release()
        return hidden, offsets

    def _embed_patches(self, side, images):
        """Patches of each image through their projection, the class token or more rows in front, positions added."""
        (projection, class_token, positions), patches = self._patches, self.spec.encoder.embedding.patches
        front, rows = class_token.reshape(patches.front, -1), []
        for image in images:
            rows.append(np.concatenate([front, self._run_head(side, projection, cut_patches(image, patches))]) + positions)
        counts = [len(image) for image in rows]
        return np.ascontiguousarray(np.concatenate(rows) if rows else np.empty((0, side.stack.width)), np.float32), counts

    @_tells_of_memory
    def head(self, hidden, offsets, which="head"):
        """What a head makes of hidden states.

        Parameters
        ----------
        hidden, offsets
            As `hidden()` returns them.
        which : "head" or "pooler"

        Returns
        -------
        (n, outputs) float32, or (T, outputs) where the head looks at every position.
        """
        if which not in self._heads:
            raise OptionError(f"this model has no {which}")
        head, stack = self._heads[which]
        rows = hidden if head.pool_outputs else pool(hidden, offsets, head.pool)
        with self._lock:
            outputs = self._run_head(self._sides["decoder" if "decoder" in self._sides else "encoder"], stack, rows)
        return pool(outputs, offsets, head.pool) if head.pool_outputs else outputs

    def has_head(self, which="head"):
        """Whether `head(..., which)` can be called."""
        return which in self._heads

    def _run_head(self, side, stack, rows):
        out = np.empty((len(rows), stack.logit_count), np.float32)
        if len(rows):
            rows = np.ascontiguousarray(rows, np.float32)
            side.runner.run(stack, [], [1] * len(rows), None, embedded=rows, head_rows=np.arange(len(rows)), logits=out)
        return out

    @_tells_of_memory
    def encode(self, batch):
        """Runs the encoder of an encoder-decoder model.

        Parameters
        ----------
        batch : list of list of int

        Returns
        -------
        list of Sequence
            Sources: the keys and values that decoder sequences attend to; .release() gives their memory back.
        """
        if self._source_weights is None:
            raise OptionError("this model has no encoder beside its decoder")
        with self._lock:
            hidden, offsets = self._encoder_hidden(batch)
            side = self._sides["decoder"]
            counts = [int(n) for n in np.diff(offsets)]
            return side.runner.make_sources(side.stack, self._source_weights, hidden, counts, self._source_pool)

    # ---- control

    def cancel(self):
        """Stops the running pass within one layer; it raises Cancelled."""
        for side in self._sides.values():
            side.runner.cancel()

    def close(self):
        """Gives the packed weights back; the engine must not be used again."""
        with self._lock:
            self._sides, self._heads, self._patches, self._source_weights, self._convolved = {}, {}, None, None, None

    def profile(self, on=True):
        """Starts (or stops) the stage timers; returns the seconds by stage since they were last started."""
        total = {}
        for side in self._sides.values():
            for stage, seconds in side.runner.profile(on).items():
                total[stage] = total.get(stage, 0.0) + seconds
        return total
