"""Reuse of computed prompts: a tree of token blocks over the memory of finished sequences; the least recently used leave first.

How much is kept depends on its use. Prompts that nobody repeats are soon forgotten, so that the next one is read into memory that is already there:
fresh memory costs more than it seems to, on virtual machines up to half of a prompt's time. What has left is remembered as a hash, and each time a
prompt asks for it, twice as much is kept from then on. The idea of learning from what has left is that of ARC (Megiddo and Modha, "ARC: A
Self-Tuning, Low Overhead Replacement Cache", 2003).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence as Ids

from cygnet.generation.engine_protocol import Engine, Sequence

# Marks of blocks that have left; and the blocks that a memory can hold at all.
_MARKS, _MOST_BLOCKS = 1 << 16, 1 << 30


class _Node:
    """One block of tokens after its parent's. A leaf holds a sequence that covers the whole path to it."""

    __slots__ = ("children", "depth", "key", "mark", "parent", "sequence", "used")

    def __init__(self, parent: _Node | None, key: tuple[int, ...], depth: int):
        self.parent = parent
        self.key = key
        self.depth = depth  # blocks from the root to the end of this one
        self.mark = _mark(parent.mark if parent else 0, key)
        self.children: dict[tuple[int, ...], _Node] = {}
        self.sequence: Sequence | None = None
        self.used = 0


def _mark(parent: int, key: tuple[int, ...]) -> int:
    """A hash of all tokens from the root to the end of a block."""
    return hash((parent, key))


class PrefixCache:
    """Remembers the key/value memory of token prefixes, in whole blocks.

    Sequences are forked in and out, so that nothing is copied; a block is freed once neither the tree nor a request holds it.

    Parameters
    ----------
    engine : Engine
    enabled : bool
        False remembers nothing.
    kept_tokens : int
        So many tokens are kept at first; the last sequence always is, whole.
    """

    def __init__(self, engine: Engine, enabled: bool = True, kept_tokens: int = 512):
        self._engine = engine
        self._enabled = enabled
        self._block = engine.block_tokens
        # A tree for each variant of position tables, whose keys differ.
        self._roots = {0: _Node(None, (), 0), 1: _Node(None, (1,), 0)}
        self._count = 0  # blocks in the tree
        self._most = -(-kept_tokens // self._block)
        self._left: dict[int, None] = {}  # marks of blocks that have left, oldest first
        self.version = 0  # grows with what is remembered
        self._clock = itertools.count(1)
        # Leaves by last use as a heap; entries whose node has been used since, or is no leaf any more, are found out when they come up.
        self._order: list[tuple[int, int, int, _Node]] = []

    def __len__(self) -> int:
        """Blocks in the tree."""
        return self._count

    def lookup(self, ids: Ids[int], total: int | None = None) -> tuple[Sequence | None, int]:
        """A sequence that already holds a prefix of the ids, for the caller to extend and release.

        At least one id is left to feed, because only a fed token gives logits. The ids may be the beginning of a text of `total` tokens.

        Returns
        -------
        (Sequence or None, int)
            And how many tokens it holds.
        """
        root = self._root(len(ids) if total is None else total)
        if root is None:
            return None, 0
        blocks = (len(ids) - 1) // self._block
        node = self._walk(root, ids, blocks)
        if self._has_left(node, ids, blocks):
            self._most = min(2 * self._most, _MOST_BLOCKS)
        if node is root:
            return None, 0
        sequence = self._any_leaf(node).sequence.fork()
        sequence.truncate(node.depth * self._block)
        return sequence, sequence.length

    def alike(self, length: int, total: int) -> bool:
        """Whether a text that has grown from one length to another was read with the same position tables all the time."""
        return self._engine.variant(length) == self._engine.variant(total) is not None

    def insert(self, sequence: Sequence, ids: Ids[int], total: int | None = None) -> None:
        """Remembers the whole blocks of a sequence whose first tokens are `ids`; the sequence stays the caller's. The ids may have been read as the
        beginning of a text of `total` tokens.
        """
        blocks = min(sequence.length, len(ids)) // self._block
        root = self._root(len(ids) if total is None else total)
        if not self._enabled or blocks == 0 or root is None:
            return
        node = self._walk(root, ids, blocks)
        if node.depth == blocks:
            return
        self.version += 1
        if node.sequence is not None:
            self._drop_sequence(node)
        for depth in range(node.depth, blocks):
            key = self._key(ids, depth)
            child = _Node(node, key, depth + 1)
            child.used = node.used
            node.children[key] = child
            node = child
            self._count += 1
            self._left.pop(child.mark, None)
        fork = sequence.fork()
        fork.truncate(blocks * self._block)
        self._make_leaf(node, fork)
        while self._count > max(self._most, blocks):
            self.evict()

    def expect(self, ids: Ids[int]) -> None:
        """Forgets at once what the ids, whole, will push out, so that they are read into its memory."""
        blocks = len(ids) // self._block
        root = self._root(len(ids))
        more = 0 if root is None else blocks - self._walk(root, ids, blocks).depth
        while self._enabled and self._count + more > max(self._most, blocks) and self.evict():
            pass

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
            self._count -= 1
            self._left[leaf.mark] = None
            if len(self._left) > _MARKS:
                del self._left[next(iter(self._left))]
            if parent.children or parent.depth == 0:
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
        for root in self._roots.values():
            root.children.clear()
        self._count = 0

    def _root(self, total: int) -> _Node | None:
        """The tree of texts that are read with the same position tables as one of that length; None: there are no others."""
        variant = self._engine.variant(total)
        return None if variant is None else self._roots[variant]

    def _walk(self, node: _Node, ids: Ids[int], blocks: int) -> _Node:
        """The deepest node below a root on the path of the first `blocks` blocks; marks the path as used now."""
        node.used = next(self._clock)
        for depth in range(blocks):
            child = node.children.get(self._key(ids, depth))
            if child is None:
                break
            child.used = node.used
            node = child
        return node

    def _key(self, ids: Ids[int], depth: int) -> tuple[int, ...]:
        """The tokens of block number `depth`."""
        return tuple(ids[depth * self._block : (depth + 1) * self._block])

    def _has_left(self, node: _Node, ids: Ids[int], blocks: int) -> bool:
        """Whether more of the ids was once known than up to a node; tells it only once."""
        mark, found = node.mark, False
        for depth in range(node.depth, blocks):
            mark = _mark(mark, self._key(ids, depth))
            if mark not in self._left:
                break
            del self._left[mark]
            found = True
        return found

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
