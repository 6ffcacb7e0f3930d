"""Engines without a model: logits from a table, or from a hash of everything read so far; memory in blocks, counted."""

import threading

import numpy as np

from cygnet import errors


class Block:
    def __init__(self, engine, tokens):
        if engine.blocks_free == 0:
            raise errors.CacheFull(f"all {engine.blocks_total} blocks are in use")
        engine.blocks_free -= 1
        self.engine, self.tokens, self.refs = engine, tokens, 1

    def drop(self):
        self.refs -= 1
        assert self.refs >= 0
        if self.refs == 0:
            self.engine.blocks_free += 1


class FakeSequence:
    def __init__(self, engine, source=None):
        self.engine, self.source, self.blocks, self.length = engine, source, [], 0
        engine.live.add(self)

    @property
    def ids(self):
        return [token for block in self.blocks for token in block.tokens][: self.length]

    def fork(self):
        copy = FakeSequence(self.engine, self.source)
        copy.blocks, copy.length = list(self.blocks), self.length
        for block in copy.blocks:
            block.refs += 1
        return copy

    def truncate(self, length):
        assert 0 <= length <= self.length
        self.length = length
        keep = -(-length // self.engine.block_tokens)
        for block in self.blocks[keep:]:
            block.drop()
        del self.blocks[keep:]

    def announce(self, length):
        pass

    def release(self):
        assert self in self.engine.live, "released twice"
        self.truncate(0)
        self.engine.live.discard(self)

    def append(self, token):
        at = self.length % self.engine.block_tokens
        if at == 0:
            self.blocks.append(Block(self.engine, []))
        elif self.blocks[-1].refs > 1:
            shared = self.blocks[-1]
            self.blocks[-1] = Block(self.engine, list(shared.tokens))
            shared.drop()
        block = self.blocks[-1]
        block.tokens = [*block.tokens[:at], token]
        self.length += 1


class FakeSource:
    def __init__(self, engine, ids):
        self.engine, self.ids = engine, tuple(ids)
        engine.sources.add(self)

    def release(self):
        self.engine.sources.remove(self)


class FakeEngine:
    """Subclasses give logits(ids, source) -> (V,) float32 of a whole prefix."""

    def __init__(self, vocab_size, max_context=None, blocks=10_000, block_tokens=4):
        self.vocab_size, self.max_context, self.block_tokens = vocab_size, max_context, block_tokens
        self.blocks_total = self.blocks_free = blocks
        self.live, self.sources = set(), set()
        self.batches = []  # tokens of each sequence, for every forward pass
        self.stopped = threading.Event()
        self.before_forward = None  # called with the batch
        self.scaled_from = 1 << 30  # texts that are longer have other position tables

    def sequence(self, source=None):
        return FakeSequence(self, source)

    def encode(self, sources):
        return [FakeSource(self, ids) for ids in sources]

    def blocks_needed(self, sequence, count):
        shared = sequence.length % self.block_tokens and sequence.blocks[-1].refs > 1
        return -(-(sequence.length + count) // self.block_tokens) - len(sequence.blocks) + (1 if shared and count else 0)

    def variant(self, length):
        return 0 if length <= self.scaled_from else 1

    def token_cost(self, keys, logits):
        return 1.0

    def cancel(self):
        self.stopped.set()

    def forward(self, batch, rows="last"):
        self.batches.append([len(ids) for _, ids in batch])
        if self.before_forward:
            self.before_forward(batch)
        if self.stopped.is_set():
            self.stopped.clear()
            raise errors.Cancelled("the forward pass was cancelled")
        needed = sum(self.blocks_needed(sequence, len(ids)) for sequence, ids in batch)
        if needed > self.blocks_free:
            raise errors.CacheFull(f"{needed} blocks are needed, {self.blocks_free} are free")
        if isinstance(rows, str):
            rows = [{"all": len(ids), "last": 1, "none": 0}[rows] for _, ids in batch]
        found = []
        for (sequence, ids), wanted in zip(batch, rows, strict=True):
            assert 0 <= wanted <= len(ids) > 0
            for place, token in enumerate(ids):
                sequence.append(token)
                if self.max_context is not None:
                    assert sequence.length <= self.max_context
                if place >= len(ids) - wanted:
                    found.append(self.logits(sequence.ids, sequence.source))
        return np.array(found, np.float32).reshape(len(found), self.vocab_size)

    def assert_clean(self, kept=0):
        """No sequence or block is held, except by `kept` cached sequences."""
        assert len(self.live) == kept and not self.sources
        if not kept:
            assert self.blocks_free == self.blocks_total


class TableEngine(FakeEngine):
    """Logits by step and last token; the last step's rows serve all later ones."""

    def __init__(self, table, prompt_length=1, **kwargs):
        super().__init__(table.shape[-1], **kwargs)
        self.table, self.prompt_length = np.asarray(table, np.float32), prompt_length

    def logits(self, ids, source):
        step = min(max(len(ids) - self.prompt_length, 0), len(self.table) - 1)
        return self.table[step, ids[-1]]


class ScriptEngine(FakeEngine):
    """Greedy decoding says the given ids, one after another, whatever the prompt."""

    def __init__(self, script, vocab_size=64, prompt_length=1, **kwargs):
        super().__init__(vocab_size, **kwargs)
        self.script, self.prompt_length = script, prompt_length

    def logits(self, ids, source):
        row = np.zeros(self.vocab_size, np.float32)
        step = len(ids) - self.prompt_length
        row[self.script[step] if step < len(self.script) else 0] = 9
        return row


class HashEngine(FakeEngine):
    """A tiny language model that is a hash of its prefix and source: equal prefixes give equal logits, any change gives others."""

    def __init__(self, vocab_size=40, seed=0, scale=3.0, **kwargs):
        super().__init__(vocab_size, **kwargs)
        self.seed, self.scale = seed, scale

    def logits(self, ids, source):
        state = hash((self.seed, source.ids if source else (), tuple(int(token) for token in ids))) % 2**32
        return np.random.default_rng(state).standard_normal(self.vocab_size).astype(np.float32) * self.scale


class Letters:
    """A TextDecoder whose token i is the i-th of the given strings."""

    def __init__(self, strings):
        self.strings = strings

    def push(self, token_id):
        return self.strings[token_id]

    def flush(self):
        return ""
