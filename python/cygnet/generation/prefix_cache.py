"""Reuse of computed prompts: a tree of token blocks over the memory of finished sequences; the least recently used leave first."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence as Ids

from cygnet.generation.engine_protocol import Engine, Sequence


class _Node:
    """One block of tokens after its parent's. A leaf holds a sequence that covers the whole path to it."""

    __slots__ = ("children", "depth", "key", "parent", "sequence", "used")

    def __init__(self, parent: _Node | None, key: tuple[int, ...], depth: int):
        self.parent = parent
        self.key = key
        self.depth = depth  # blocks from the root to the end of this one
        self.children: dict[tuple[int, ...], _Node] = {}
        self.sequence: Sequence | None = None
        self.used = 0


class PrefixCache:
    """Remembers the key/value memory of token prefixes, in whole blocks.

    Sequences are forked in and out, so that nothing is copied; a block is freed once neither the tree nor a request holds it.

    Parameters
    ----------
    engine : Engine
    enabled : bool
        False remembers nothing.
    """

    def __init__(self, engine: Engine, enabled: bool = True):
        self._engine = engine
        self._enabled = enabled
        self._block = engine.block_tokens
        self._root = _Node(None, (), 0)
        self.version = 0  # grows with what is remembered
        self._clock = itertools.count(1)
        # Leaves by last use as a heap; entries whose node has been used since, or is no leaf any more, are found out when they come up.
        self._order: list[tuple[int, int, int, _Node]] = []

    def __len__(self) -> int:
        """Blocks in the tree."""

        def count(node):
            return sum(1 + count(child) for child in node.children.values())

        return count(self._root)

    def lookup(self, ids: Ids[int]) -> tuple[Sequence | None, int]:
        """A sequence that already holds a prefix of the ids, for the caller to extend and release.

        At least one id is left to feed, because only a fed token gives logits.

        Returns
        -------
        (Sequence or None, int)
            And how many tokens it holds.
        """
        node = self._walk(ids, (len(ids) - 1) // self._block)
        if node is self._root:
            return None, 0
        sequence = self._any_leaf(node).sequence.fork()
        sequence.truncate(node.depth * self._block)
        return sequence, sequence.length

    def insert(self, sequence: Sequence, ids: Ids[int]) -> None:
        """Remembers the whole blocks of a sequence whose first tokens are `ids`; the sequence stays the caller's."""
        blocks = min(sequence.length, len(ids)) // self._block
        if not self._enabled or blocks == 0:
            return
        node = self._walk(ids, blocks)
        if node.depth == blocks:
            return
        self.version += 1
        if node.sequence is not None:
            self._drop_sequence(node)
        for depth in range(node.depth, blocks):
            key = tuple(ids[depth * self._block : (depth + 1) * self._block])
            child = _Node(node, key, depth + 1)
            child.used = node.used
            node.children[key] = child
            node = child
        fork = sequence.fork()
        fork.truncate(blocks * self._block)
        self._make_leaf(node, fork)

    def evict(self) -> bool:
        """Forgets the least recently used block; False if there is none."""
        while self._order:
            used, _, _, leaf = heapq.heappop(self._order)
            if leaf.sequence is None:
                continue
            if leaf.used != used:
                self._make_leaf(leaf, leaf.sequence)
                continue
            parent, sequence, leaf.sequence = leaf.parent, leaf.sequence, None
            del parent.children[leaf.key]
            if parent.children or parent is self._root:
                sequence.release()
            else:
                sequence.truncate(parent.depth * self._block)
                self._make_leaf(parent, sequence)
            return True
        return False

    def clear(self) -> None:
        """Forgets everything."""
        for _, _, _, leaf in self._order:
            if leaf.sequence is not None:
                self._drop_sequence(leaf)
        self._order.clear()
        self._root.children.clear()

    def _walk(self, ids: Ids[int], blocks: int) -> _Node:
        """The deepest node on the path of the first `blocks` blocks; marks the path as used now."""
        node, now = self._root, next(self._clock)
        for depth in range(blocks):
            child = node.children.get(tuple(ids[depth * self._block : (depth + 1) * self._block]))
            if child is None:
                break
            child.used = now
            node = child
        return node

    def _any_leaf(self, node: _Node) -> _Node:
        while node.sequence is None:
            node = next(iter(node.children.values()))
        return node

    def _make_leaf(self, node: _Node, sequence: Sequence) -> None:
        node.sequence = sequence
        heapq.heappush(self._order, (node.used, -node.depth, next(self._clock), node))

    def _drop_sequence(self, node: _Node) -> None:
        node.sequence.release()
        node.sequence = None
