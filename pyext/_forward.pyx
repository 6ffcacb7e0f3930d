"""The one forward pass: a ragged batch of rows through a stack, in one parallel region.

run() lays the tokens of all sequences in one (T, D) array, never padded; sequences read and extend their own key/value blocks. make_sources() turns an
encoder's output into the key/value memory that decoders attend to across.
"""

from libc.stdint cimport int8_t, int32_t, int64_t
from libc.string cimport memset

from cygnet._core._block cimport block_forward, settle
from cygnet._core._cache cimport BlockPool, Sequence
from cygnet._core._ends cimport Work, embed, head, write_hidden
from cygnet._core._kernels cimport CYG_GROUP, CYG_KEY_BLOCK, CYG_KEY_CHUNK, CYG_KV_F16, CYG_KV_F32, cyg_kv_kind, kernels
from cygnet._core._linear cimport Linear, Rows, Weight, memory_give, memory_take, basis_of
from cygnet._core._pass cimport FEW_ROWS, STAGE_EMBED, Bias, Norm, Pass, Rope, View, prepare, product
from cygnet._core._stack cimport Stack
from cygnet._core._threads cimport TEAM_STAGES, Job, team_claim, team_counter, team_finish, team_stopped

import numpy as np

from cygnet.errors import Cancelled, OptionError, OutOfRange

STAGE_NAMES = ("embed", "norm", "qkv", "attention", "output", "up", "activation", "down", "head")
cdef int64_t SCRATCH_TILE = 16       # query tokens of an attention share, for the bias of disentangled attention
cdef int ROPES = 8                   # rotary tables of a variant, as cygnet.position_tables numbers them
cdef int64_t SPLIT_TOKENS = 16       # most new tokens of a sequence whose chunks of keys are shares of their own
cdef int64_t SPLIT_ROWS = 1024       # most rows of parts: with more there are shares enough without
cdef size_t KEPT_BYTES = 64 << 20    # a workspace larger than this shrinks when a pass needs less than a quarter of it

BEYOND = ("a key or value of this model lies beyond 65504, the largest number of float16: load the model with cache_dtype=\"float32\"")


cdef int64_t _most_chunks(Sequence sequence, int64_t count):
    """Chunks of keys that a sequence's new tokens see, in its own memory or in its source's."""
    cdef Sequence source = sequence.source
    return (max(sequence.length + count, source.length if source is not None else 0) + CYG_KEY_CHUNK - 1) // CYG_KEY_CHUNK


cdef class Workspace:
    """Memory of a pass, grown as needed and given back when far too large."""
    cdef char *memory
    cdef size_t size, used

    def __dealloc__(self):
        memory_give(self.memory)

    cdef int need(self, size_t size) except -1:
        if size > self.size or (self.size > KEPT_BYTES and size < self.size // 4):
            memory_give(self.memory)
            self.size = 0
            self.memory = <char *>memory_take(size)
            if self.memory == NULL:
                raise MemoryError(f"cannot allocate {size} bytes for a forward pass; process fewer tokens at a time")
            self.size = size
        self.used = 0
        return 0

    @property
    def nbytes(self):
        return self.size


cdef inline size_t _step(int64_t count, size_t size) noexcept nogil:
    return (count * size + 63) & ~<size_t>63


cdef class Tables:
    """Rotary tables and score biases that passes read by number; arrays are kept alive here."""
    cdef list kept
    cdef Rope ropes[64]
    cdef Bias biases[64]
    cdef int64_t reach[128]  # positions that each rotary table, then each score bias, covers; 0: there is none

    def __cinit__(self):
        self.kept = [None] * 128
        memset(self.reach, 0, sizeof(self.reach))
        memset(self.ropes, 0, sizeof(self.ropes))
        memset(self.biases, 0, sizeof(self.biases))

    def rope(self, int number, bint interleaved, const float[:, ::1] cos, const float[:, ::1] sin):
        """cos and sin (positions, half) of rotary table `number`."""
        if not 0 <= number < 64:
            raise OptionError("at most 64 rotary tables")
        self.kept[number] = (cos, sin)
        self.reach[number] = cos.shape[0]
        self.ropes[number].half, self.ropes[number].interleaved = cos.shape[1], interleaved
        self.ropes[number].cos = &cos[0, 0] if cos.shape[0] and cos.shape[1] else NULL
        self.ropes[number].sin = &sin[0, 0] if cos.shape[0] and cos.shape[1] else NULL

    def bias(self, int number, const float[:, ::1] by_distance, const float[:, ::1] by_key):
        """Score biases (heads, 2 L + 1) with distance 0 in the middle, and (heads, keys); None where absent."""
        cdef Bias *bias
        if not 0 <= number < 64:
            raise OptionError("at most 64 score biases")
        bias = &self.biases[number]
        self.kept[64 + number] = (by_distance, by_key)
        self.reach[64 + number] = by_distance.shape[1] // 2 if by_distance is not None else by_key.shape[1] if by_key is not None else 0
        bias.by_distance = &by_distance[0, by_distance.shape[1] // 2] if by_distance is not None else NULL
        bias.distance_stride = by_distance.shape[1] if by_distance is not None else 0
        bias.by_key = &by_key[0, 0] if by_key is not None else NULL
        bias.key_stride = by_key.shape[1] if by_key is not None else 0

    cdef int cover(self, int ropes, int64_t length) except -1:
        """Refuses a sequence that is longer than its tables, which the kernels would read past: ROPES rotary ones from `ropes` on, and all biases."""
        cdef int i
        for i in range(128):
            if (ropes <= i < ropes + ROPES or i >= 64) and 0 < self.reach[i] < length:
                raise OptionError(f"position tables of {self.reach[i]} rows are too short for a sequence of {length}: call prepare() before the pass")
        return 0


cdef class Runner:
    """Runs passes over stacks with a number of threads; one at a time."""
    cdef readonly int threads
    cdef cyg_kv_kind kv
    cdef readonly Tables tables
    cdef Workspace workspace
    cdef int cancelled
    cdef int64_t clock[16]
    cdef bint timed

    def __init__(self, int threads):
        self.threads = threads
        self.kv = CYG_KV_F32
        self.tables = Tables()
        self.workspace = Workspace()

    def keep_half(self, bint half):
        """Keys and values are kept in float16 from now on, or in float32; to be decided before there are sequences."""
        self.kv = CYG_KV_F16 if half else CYG_KV_F32

    def cancel(self):
        """Stops the running pass within one layer; it raises Cancelled."""
        self.cancelled = 1

    def profile(self, bint on):
        """Starts or stops the stage timers and returns what they held: seconds by stage."""
        cdef int i
        seconds = {name: self.clock[i] / 1e9 for i, name in enumerate(STAGE_NAMES)}
        memset(self.clock, 0, sizeof(self.clock))
        self.timed = on
        return seconds

    def block_bytes(self, Stack stack, bint cross=False):
        """Bytes of one block of key/value memory."""
        return (stack.layout.cross_elements if cross else stack.layout.block_elements) * (2 if self.kv == CYG_KV_F16 else 4)

    def run(self, Stack stack, list sequences, list counts, const int32_t[::1] ids, *, const float[:, ::1] embedded=None,
            const int32_t[::1] table_rows=None, const int32_t[::1] types=None, const int32_t[::1] ropes=None, float[:, ::1] hidden=None,
            const int64_t[::1] head_rows=None, float[:, ::1] logits=None):
        """One pass.

        Parameters
        ----------
        sequences : list of Sequence, or empty
            Extended by their rows; empty: bidirectional, nothing is kept.
        counts : list of int
            Rows of each sequence; their sum is T.
        ids : (T,) int32, or None with `embedded` (T, D)
        table_rows, types : (T,) int32
            Rows of the position and type tables.
        ropes : (sequences,) int32
            First rotary table of each sequence.
        hidden : (T, D) float32, optional
            Receives the hidden states after the final norm.
        head_rows, logits : (R,) int64 ascending or not, (R, V) float32
            Rows whose head outputs are wanted, and where they go.
        """
        cdef Work work
        cdef Job job
        cdef Sequence sequence
        cdef int stopped
        cdef int64_t i, total = sum(counts)
        if total == 0:
            return
        if 32 * stack.layout.count + 64 > TEAM_STAGES:
            raise OptionError(f"a stack of {stack.layout.count} layers is deeper than a pass can be")
        if ids is not None and ids.shape[0] != total:
            raise OptionError(f"{ids.shape[0]} tokens for sequences of {total}")
        memset(&work, 0, sizeof(work))
        work.stack = &stack.layout
        work.ids = &ids[0] if ids is not None else NULL
        work.embedded = &embedded[0, 0] if embedded is not None else NULL
        work.rows_of = &table_rows[0] if table_rows is not None else NULL
        work.types = &types[0] if types is not None else NULL
        work.hidden = &hidden[0, 0] if hidden is not None else NULL
        if head_rows is not None and head_rows.shape[0]:
            work.head_rows, work.head_count, work.logits = &head_rows[0], head_rows.shape[0], &logits[0, 0]
        for sequence, count in zip(sequences, counts):
            sequence.reserve(count)
        self.cancelled = 0
        with Job(self.threads) as job:
            self._lay_out(&work, stack, sequences, counts, ropes, total)
            work.p.members = job.members
            stopped = job.run(_forward, &work, &self.cancelled)
        if stopped:
            raise Cancelled("the forward pass was stopped")
        if work.beyond:
            raise OutOfRange(BEYOND)
        for sequence, count in zip(sequences, counts):
            sequence.advance(count)

    cdef int _lay_out(self, Work *work, Stack stack, list sequences, list counts, const int32_t[::1] ropes, int64_t total) except -1:
        """Views of the sequences and one workspace cut into all buffers; sizes first, then pointers."""
        cdef Pass *p = &work.p
        cdef Sequence sequence, source
        cdef int64_t i, j, row = 0, blocks = 0, longest = 0, rows, slots = total * stack.layout.expert_top_k
        cdef int64_t block_bytes = self.block_bytes(stack), code_rows, padded, part_rows = 0
        cdef char *at
        cdef char *block
        cdef bint keep = len(sequences) > 0
        p.table, p.tokens, p.kv_kind = kernels(), total, self.kv
        p.view_count = len(counts)
        p.clock = self.clock if self.timed else NULL
        p.ropes, p.biases = self.tables.ropes, self.tables.biases
        p.beyond = &work.beyond
        for count in counts:
            longest = max(longest, count)
            blocks += (count + CYG_KEY_BLOCK - 1) // CYG_KEY_BLOCK
        if keep and longest <= SPLIT_TOKENS:
            for sequence, count in zip(sequences, counts):
                part_rows += count * _most_chunks(sequence, count)
            if part_rows > SPLIT_ROWS:
                part_rows = 0
        padded = (max(stack.layout.code_width, stack.layout.expert_width) + CYG_GROUP - 1) // CYG_GROUP * CYG_GROUP
        code_rows = max(total, slots, work.head_count)
        p.scratch_width = padded
        p.scratch_bytes = _step(FEW_ROWS * padded, 5) + _step(FEW_ROWS * padded // CYG_GROUP, 8) + 64
        if stack.layout.positional_rows:
            p.scratch_bytes = max(p.scratch_bytes, _step(SCRATCH_TILE * (longest + stack.layout.positional_rows), 4))
        p.room_offset = p.scratch_bytes
        p.scratch_bytes += _step(stack.layout.room_width, 4)
        for sizing in (True, False):
            at = NULL if sizing else self.workspace.memory
            p.views, at = <View *>at, at + _step(p.view_count, sizeof(View))
            p.view_of, at = <int32_t *>at, at + _step(total, 4)
            p.x, at = <float *>at, at + _step(total * stack.layout.width, 4)
            p.h, at = <float *>at, at + _step(total * stack.layout.width, 4)
            p.branch, at = <float *>at, at + _step(total * stack.layout.width, 4)
            p.qkv, at = <float *>at, at + _step(total * stack.layout.qkv_width, 4)
            p.mixed, at = <float *>at, at + _step(total * stack.layout.mixed_width, 4)
            p.wide, at = <float *>at, at + _step(total * stack.layout.wide_width, 4)
            p.positional, at = <float *>at, at + _step(total * stack.layout.positional_width, 4)
            p.codes, at = <int8_t *>at, at + _step(code_rows * padded, 1)
            p.code_scales, at = <float *>at, at + _step(code_rows * padded // CYG_GROUP, 4)
            p.code_sums, at = <int32_t *>at, at + _step(code_rows * padded // CYG_GROUP, 4)
            p.parts, at = <float *>at, at + _step(part_rows * stack.layout.part_width, 4)
            p.arrived, at = <team_counter *>at, at + _step(p.view_count * stack.layout.key_heads, sizeof(team_counter))
            p.router, at = <float *>at, at + _step(total * (stack.layout.expert_count + 1), 4)
            p.expert_rows, at = <float *>at, at + _step((slots + total) * stack.layout.width, 4)
            p.expert_wide, at = <float *>at, at + _step(slots * stack.layout.expert_width, 4)
            p.expert_token, at = <int32_t *>at, at + _step(2 * slots, 4)
            p.expert_weight, at = <float *>at, at + _step(2 * slots, 4)
            p.expert_start, at = <int64_t *>at, at + _step(2 * stack.layout.expert_count + 1, 8)
            p.scratch, at = at, at + self.threads * p.scratch_bytes
            work.project_input, at = <float *>at, at + _step(total * stack.layout.embed_width if stack.layout.embed_project != NULL else 0, 4)
            work.head_a, at = <float *>at, at + _step(work.head_count * max(stack.layout.head_width, stack.layout.width, stack.layout.output_width), 4)
            work.head_b, at = <float *>at, at + _step(work.head_count * max(stack.layout.head_width, stack.layout.width, stack.layout.output_width), 4)
            lists, at = <size_t>at, at + _step(0 if keep else blocks, sizeof(void *))
            kv, at = <size_t>at, at + (0 if keep else blocks * block_bytes)
            if sizing:
                self.workspace.need(<size_t>at)
        if part_rows == 0:
            p.parts = NULL
        memset(p.arrived, 0, p.view_count * stack.layout.key_heads * sizeof(team_counter))
        p.single = True
        part_rows = 0
        block = <char *><size_t>kv
        for i in range(p.view_count):
            count = counts[i]
            p.views[i].row, p.views[i].count, p.views[i].start = row, count, 0
            p.views[i].ropes = ropes[i] if ropes is not None else 0
            p.views[i].source_blocks, p.views[i].source_keys = NULL, 0
            if keep:
                sequence = sequences[i]
                p.views[i].start, p.views[i].blocks, p.views[i].part = sequence.length, sequence.blocks, part_rows
                part_rows += count * _most_chunks(sequence, count)
                if sequence.source is not None:
                    source = sequence.source
                    p.views[i].source_blocks, p.views[i].source_keys = source.blocks, source.length
            else:
                p.views[i].blocks = <void **><size_t>lists
                for j in range((count + CYG_KEY_BLOCK - 1) // CYG_KEY_BLOCK):
                    p.views[i].blocks[j] = block
                    block += block_bytes
                lists += (count + CYG_KEY_BLOCK - 1) // CYG_KEY_BLOCK * sizeof(void *)
            self.tables.cover(p.views[i].ropes, p.views[i].start + count)
            p.single = p.single and count == 1
            for j in range(row, row + count):
                p.view_of[j] = <int32_t>i
            row += count
        return 0

    def make_sources(self, Stack decoder, list weights, const float[:, ::1] hidden, list counts, BlockPool pool):
        """The key/value memory of encoded sources: `weights` has one Weight (keys and values side by side) for each decoder layer."""
        cdef Sequence source
        cdef int64_t row = 0, first
        cdef int layer
        sources = []
        for count in counts:
            source = Sequence(pool)
            source.reserve(count)
            sources.append(source)
        for layer in range(decoder.layout.count):
            _store_source(self, decoder, layer, weights[layer], hidden, counts, sources)
        for source, count in zip(sources, counts):
            source.advance(count)
        return sources


cdef struct SourceWork:
    Pass p
    const Linear *parts
    int count
    const float *hidden
    int64_t width
    int heads, head_dim
    int64_t columns, kv_offset
    int beyond


cdef void _source_job(void *argument, int thread) noexcept nogil:
    """Keys and values of all source rows: the product, then their blocks."""
    cdef SourceWork *w = <SourceWork *>argument
    cdef Pass *p = &w.p
    cdef int64_t row, head, position, dim = w.head_dim
    cdef size_t size = 4 if p.kv_kind == CYG_KV_F32 else 2
    cdef char *block
    cdef float *key
    cdef Rows rows = prepare(p, thread, NULL, <float *>w.hidden, w.width, NULL, basis_of(w.parts, w.count), False)
    product(p, thread, STAGE_EMBED, w.parts, w.count, &rows, 1.0, 0, p.qkv, w.columns)
    while True:
        row = team_claim(p.members, thread, CYG_KEY_BLOCK, p.tokens)
        if row >= p.tokens:
            break
        for row in range(row, min(row + CYG_KEY_BLOCK, p.tokens)):
            position = row - p.views[p.view_of[row]].row
            for head in range(w.heads):
                key = p.qkv + row * w.columns + head * dim
                block = <char *>p.views[p.view_of[row]].blocks[position // CYG_KEY_BLOCK] + (w.kv_offset + head * 2 * dim * CYG_KEY_BLOCK) * size
                if p.table.store_kv(p.kv_kind, key, key + w.heads * dim, w.head_dim, <int>(position % CYG_KEY_BLOCK), block,
                                    block + dim * CYG_KEY_BLOCK * size):
                    p.beyond[0] = 1
    team_finish(p.members, thread, p.tokens)


cdef int _store_source(Runner runner, Stack decoder, int layer, weight, const float[:, ::1] hidden, list counts, list sources) except -1:
    cdef SourceWork work
    cdef Job job
    cdef Sequence source
    cdef Weight kv = weight
    cdef Pass *p = &work.p
    cdef int64_t total = hidden.shape[0], row = 0, j, padded = (kv.k + CYG_GROUP - 1) // CYG_GROUP * CYG_GROUP
    cdef char *at
    cdef int i
    if total == 0:
        return 0
    memset(&work, 0, sizeof(work))
    work.parts, work.count, work.columns = kv.parts, kv.count, kv.n
    work.hidden, work.width = &hidden[0, 0], kv.k
    p.beyond = &work.beyond
    work.heads, work.head_dim = decoder.layout.cross[layer].kv_heads, decoder.layout.cross[layer].head_dim
    work.kv_offset = decoder.layout.cross[layer].kv_offset
    p.table, p.tokens, p.kv_kind, p.view_count = kernels(), total, runner.kv, len(counts)
    p.scratch_width = padded
    p.scratch_bytes = _step(FEW_ROWS * padded, 5) + _step(FEW_ROWS * padded // CYG_GROUP, 8) + 64
    with Job(runner.threads) as job:
        for sizing in (True, False):
            at = NULL if sizing else runner.workspace.memory
            p.views, at = <View *>at, at + _step(p.view_count, sizeof(View))
            p.view_of, at = <int32_t *>at, at + _step(total, 4)
            p.qkv, at = <float *>at, at + _step(total * kv.n, 4)
            p.codes, at = <int8_t *>at, at + _step(total * padded, 1)
            p.code_scales, at = <float *>at, at + _step(total * padded // CYG_GROUP, 4)
            p.code_sums, at = <int32_t *>at, at + _step(total * padded // CYG_GROUP, 4)
            p.scratch, at = at, at + runner.threads * p.scratch_bytes
            if sizing:
                runner.workspace.need(<size_t>at)
        for i, count in enumerate(counts):
            source = sources[i]
            p.views[i].row, p.views[i].count, p.views[i].blocks = row, count, source.blocks
            for j in range(row, row + count):
                p.view_of[j] = i
            row += count
        p.members = job.members
        job.run(_source_job, &work, NULL)
    if work.beyond:
        raise OutOfRange(BEYOND)
    return 0


cdef void _forward(void *argument, int thread) noexcept nogil:
    """The whole pass, as every member runs it."""
    cdef Work *work = <Work *>argument
    cdef Pass *p = &work.p
    cdef const Norm *pending = NULL
    cdef int i
    embed(work, thread)
    for i in range(work.stack.count):
        pending = block_forward(p, thread, &work.stack.layers[i], pending)
        if team_stopped(p.members, thread):
            return
    settle(p, thread, pending, work.stack.width)
    if work.hidden != NULL:
        write_hidden(work, thread)
    if work.head_count:
        head(work, thread)
