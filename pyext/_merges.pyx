"""Byte-pair segmentation by piece scores, as SentencePiece does it: the neighbours whose union scores best are joined, leftmost first."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memset

import re

from cygnet._core._lane cimport cyg_ids
from cygnet._core._segmenter cimport Scratch, Segmenter, cyg_text_slack
from cygnet._core._trie cimport Trie, cyg_trie_find, cyg_trie_step, cyg_trie_unit
from cygnet._core._word_cache cimport (CYG_WORD_SLACK, cyg_word, cyg_word_keep, cyg_word_locate, cyg_word_recall, cyg_words, cyg_words_free,
                                       cyg_words_init)

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_length(uint8_t first)

cdef enum:
    BATCH = 32

cdef const char *SPACE_SIGN = b"\xe2\x96\x81"


# In pieces joined by NUL, a space sign behind another character of its piece.
INNER_SIGN = re.compile("[^\u2581\0]\u2581")

# A symbol covers bytes start .. start + size; size 0 marks one that was joined to its left neighbour.
cdef struct Symbol:
    int32_t previous
    int32_t next
    int32_t start
    int32_t size
    bint frozen


cdef struct Pair:
    double score
    int32_t left
    int32_t right
    int32_t size


# Pairs with the best at the root: higher score, then further left.
cdef struct Heap:
    Pair *pairs
    size_t size
    size_t room


cdef inline bint before(const Pair *a, const Pair *b) noexcept nogil:
    return a.score > b.score or (a.score == b.score and a.left < b.left)


cdef int heap_push(Heap *heap, Pair pair) noexcept nogil:
    cdef size_t at, parent
    cdef Pair *pairs
    if heap.size == heap.room:
        pairs = <Pair *> realloc(heap.pairs, (2 * heap.room + 64) * sizeof(Pair))
        if pairs == NULL:
            return -1
        heap.pairs = pairs
        heap.room = 2 * heap.room + 64
    at = heap.size
    heap.size += 1
    while at:
        parent = (at - 1) // 2
        if not before(&pair, &heap.pairs[parent]):
            break
        heap.pairs[at] = heap.pairs[parent]
        at = parent
    heap.pairs[at] = pair
    return 0


cdef Pair heap_pop(Heap *heap) noexcept nogil:
    cdef Pair top = heap.pairs[0], last
    cdef size_t at = 0, child
    heap.size -= 1
    last = heap.pairs[heap.size]
    while True:
        child = 2 * at + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and before(&heap.pairs[child + 1], &heap.pairs[child]):
            child += 1
        if not before(&heap.pairs[child], &last):
            break
        heap.pairs[at] = heap.pairs[child]
        at = child
    heap.pairs[at] = last
    return top


cdef class MergeSpace(Scratch):
    """Adds the heap, for each unused piece where it was last seen to split, and the words seen before."""

    cdef Heap heap
    cdef int32_t *splits
    cdef cyg_words words

    def __cinit__(self, size_t unused=0, bint by_words=False):
        memset(&self.words, 0, sizeof(self.words))
        self.splits = <int32_t *> malloc((unused + 1) * sizeof(int32_t))
        if self.splits == NULL or (by_words and cyg_words_init(&self.words)):
            raise MemoryError

    def __dealloc__(self):
        free(self.heap.pairs)
        free(self.splits)
        cyg_words_free(&self.words)


cdef class MergeSegmenter(Segmenter):
    """Joins characters into pieces.

    Where no piece has a space sign after another character, and the sign is itself a piece, nothing joins across the beginning of a
    word: words are then segmented one by one, and remembered.

    Parameters
    ----------
    pieces, ids : sequences of str and int
        Pieces that may be the result of a join, unused ones among them.
    scores : sequence of float
        Score of each id, by id.
    whole : (sequence of str, sequence of int)
        Further pieces that a symbol may spell, but no join may make.
    frozen : sequence of str
        Stretches that are one symbol from the start and are never joined.
    unused : sequence of int
        Ids that are taken apart again after the last join.
    unknown, byte_ids
        As in Segmenter.
    """

    cdef Trie joins
    cdef Trie names
    cdef Trie frozen
    cdef double *scores
    cdef int32_t *slots
    cdef size_t unused_count
    cdef bint by_words

    def __init__(self, pieces, ids, scores, whole, frozen, unused, unknown, byte_ids=None):
        cdef Py_ssize_t i
        Segmenter.__init__(self, unknown, byte_ids)
        pieces, ids, scores, frozen, unused = list(pieces), list(ids), list(scores), list(frozen), list(unused)
        self.joins = Trie(pieces, ids)
        self.names = Trie([*pieces, *whole[0]], [*ids, *whole[1]]) if whole[0] else self.joins
        self.frozen = Trie(frozen, range(len(frozen)))
        self.unused_count = len(unused)
        spelled = [*pieces, *whole[0], *frozen]
        joined = "\0".join(spelled)
        self.by_words = "\u2581" in pieces and joined.count("\0") == len(spelled) - 1 and INNER_SIGN.search(joined) is None
        self.scores = <double *> malloc((len(scores) + 1) * sizeof(double))
        self.slots = <int32_t *> malloc((len(scores) + 1) * sizeof(int32_t))
        if self.scores == NULL or self.slots == NULL:
            raise MemoryError
        for i in range(len(scores)):
            self.scores[i] = scores[i]
            self.slots[i] = -1
        for i in range(len(unused)):
            self.slots[<Py_ssize_t> unused[i]] = <int32_t> i

    def __dealloc__(self):
        free(self.scores)
        free(self.slots)

    cdef Scratch scratch(self):
        return MergeSpace(self.unused_count, self.by_words)

    cdef int segment(self, Scratch space, const uint8_t *text, size_t size) noexcept nogil:
        if self.by_words and not space.keep_ranges and text == space.text.bytes:
            return self.segment_words(<MergeSpace> space, size)
        return self.segment_whole(space, text, size)

    cdef int segment_words(self, MergeSpace space, size_t size) noexcept nogil:
        """Appends the pieces of space.text, a batch of words at a time."""
        cdef cyg_word[BATCH] batch
        cdef size_t at = 0, end, count = 0
        cdef const uint8_t *text
        cdef bint after_sign
        cdef int failed = 0
        if cyg_text_slack(&space.text, CYG_WORD_SLACK):
            return -1
        text = space.text.bytes
        while at < size and not failed:
            end = at
            after_sign = True
            while end < size:
                if text[end] == 0xE2 and size - end >= 3 and memcmp(text + end, SPACE_SIGN, 3) == 0:
                    if not after_sign:
                        break
                    end += 3
                else:
                    after_sign = False
                    end += 1
            batch[count].bytes = text + at
            batch[count].size = end - at
            batch[count].mark = False
            cyg_word_locate(&space.words, &batch[count])
            count += 1
            at = end
            if count == BATCH:
                failed = self.resolve(space, batch, count)
                count = 0
        return failed if failed else self.resolve(space, batch, count)

    cdef int resolve(self, MergeSpace space, const cyg_word *batch, size_t count) noexcept nogil:
        cdef size_t i, before
        cdef int found
        for i in range(count):
            found = cyg_word_recall(&space.words, &batch[i], &space.ids)
            if found > 0:
                continue
            before = space.ids.size
            if found == 0:
                found = self.segment_whole(space, batch[i].bytes, batch[i].size)
            if found:
                return found
            cyg_word_keep(&space.words, &batch[i], space.ids.data + before, space.ids.size - before)
        return 0

    cdef int segment_whole(self, Scratch space, const uint8_t *text, size_t size) noexcept nogil:
        cdef Symbol *symbols
        cdef int32_t *stack
        cdef int32_t at
        cdef size_t i
        cdef int failed = 0
        if size == 0:
            return 0
        if size > 0x7FFFFFF0:
            return -1
        symbols = <Symbol *> space.need(size * (sizeof(Symbol) + 2 * sizeof(int32_t)))
        if symbols == NULL:
            return -1
        stack = <int32_t *> (symbols + size)
        for i in range(self.unused_count):
            (<MergeSpace> space).splits[i] = 0
        if self.join(<MergeSpace> space, symbols, self.symbols_of(symbols, text, size), text):
            return -1
        at = 0
        while at >= 0 and not failed:
            failed = self.take_apart(<MergeSpace> space, text, symbols[at].start, symbols[at].size, stack)
            at = symbols[at].next
        return failed if failed else self.finish(space, text)

    cdef int32_t symbols_of(self, Symbol *symbols, const uint8_t *text, size_t size) noexcept nogil:
        """One symbol for each frozen stretch (the longest that begins there) and each other character; their number."""
        cdef const cyg_trie_unit *units = self.frozen.trie.units
        cdef size_t at = 0, end, longest
        cdef int32_t count = 0, node
        while at < size:
            longest = 0
            node = 0
            end = at
            while end < size:
                node = cyg_trie_step(units, node, text[end])
                if node < 0:
                    break
                end += 1
                if units[node].value >= 0:
                    longest = end - at
            symbols[count].frozen = longest > 0
            if not longest:
                longest = min(cyg_utf8_length(text[at]), size - at)
            symbols[count].start = <int32_t> at
            symbols[count].size = <int32_t> longest
            symbols[count].previous = count - 1
            symbols[count].next = count + 1
            count += 1
            at += longest
        symbols[count - 1].next = -1
        return count

    cdef int propose(self, MergeSpace space, Symbol *symbols, const uint8_t *text, int32_t left, int32_t right) noexcept nogil:
        """Puts a pair on the heap if its union is a piece."""
        cdef Pair pair
        cdef int32_t id
        if left < 0 or right < 0 or symbols[left].frozen or symbols[right].frozen:
            return 0
        pair.size = symbols[left].size + symbols[right].size
        id = cyg_trie_find(&self.joins.trie, <const char *> text + symbols[left].start, pair.size)
        if id < 0:
            return 0
        if self.slots[id] >= 0:
            space.splits[self.slots[id]] = symbols[left].size
        pair.score, pair.left, pair.right = self.scores[id], left, right
        return heap_push(&space.heap, pair)

    cdef int join(self, MergeSpace space, Symbol *symbols, int32_t count, const uint8_t *text) noexcept nogil:
        cdef int32_t i, left, right
        cdef Pair pair
        space.heap.size = 0
        for i in range(1, count):
            if self.propose(space, symbols, text, i - 1, i):
                return -1
        while space.heap.size:
            pair = heap_pop(&space.heap)
            left, right = pair.left, pair.right
            if not symbols[left].size or not symbols[right].size or symbols[left].size + symbols[right].size != pair.size:
                continue
            symbols[left].size = pair.size
            symbols[left].next = symbols[right].next
            if symbols[right].next >= 0:
                symbols[symbols[right].next].previous = left
            symbols[right].size = 0
            if self.propose(space, symbols, text, symbols[left].previous, left) or self.propose(space, symbols, text, left, symbols[left].next):
                return -1
        return 0

    cdef int take_apart(self, MergeSpace space, const uint8_t *text, int32_t start, int32_t size, int32_t *stack) noexcept nogil:
        """Appends a symbol's piece, or the pieces it was made of where its own is unused."""
        cdef size_t depth = 1
        cdef int32_t id, split
        cdef int failed = 0
        stack[0] = start
        stack[1] = size
        while depth and not failed:
            depth -= 1
            start, size = stack[2 * depth], stack[2 * depth + 1]
            id = cyg_trie_find(&self.names.trie, <const char *> text + start, size)
            split = space.splits[self.slots[id]] if id >= 0 and self.slots[id] >= 0 else 0
            if split:
                stack[2 * depth], stack[2 * depth + 1] = start + split, size - split
                stack[2 * depth + 2], stack[2 * depth + 3] = start, split
                depth += 2
            else:
                failed = self.put(space, text, id, start, start + size)
        return failed
