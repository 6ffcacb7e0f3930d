"""What changes logits before a token is drawn: biases, penalties, bans, minimum length, forced tokens and masks, always in this order.

logit_bias, repetition penalty, presence and frequency penalty, no-repeat n-grams, bad words, minimum length, suppressed tokens, then whichever
applies of the tokens a function allows, a forced token, and the mask of a grammar. docs/generation.md gives each formula.

The functions keep the interpreter's lock: each takes microseconds, and giving the lock away for every row would let a busy Python thread hold up
the whole batch once a row.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy


cdef void *grown(void *memory, size_t size) except NULL:
    cdef void *new = realloc(memory, size)
    if new == NULL:
        raise MemoryError
    return new


cdef class History:
    """The ids so far of one continuation, prompt included, and how often each distinct one was generated.

    Parameters
    ----------
    prompt : sequence of int
        The decoder's prompt; its ids count as seen but not as generated.

    Examples
    --------
    >>> history = History([7, 8])
    >>> history.append(9)
    >>> history.ids(), history.fork().generated
    ([7, 8, 9], 1)
    """

    cdef int32_t *items
    cdef int64_t capacity
    cdef readonly int64_t length, prompt_length
    # Distinct ids in order of appearance with their generated counts, and an open-addressing table from id to place + 1.
    cdef int32_t *seen
    cdef int32_t *counts
    cdef int32_t *table
    cdef int64_t distinct, table_size

    def __init__(self, prompt):
        self.prompt_length = len(prompt)
        self.reserve(self.prompt_length + 64)
        self.rehash(256)
        for token in prompt:
            self.add(token, 0)

    def __dealloc__(self):
        free(self.items)
        free(self.seen)
        free(self.counts)
        free(self.table)

    @property
    def generated(self):
        """How many ids follow the prompt."""
        return self.length - self.prompt_length

    def append(self, int32_t token):
        self.add(token, 1)

    def ids(self):
        """All ids as a list."""
        return [self.items[i] for i in range(self.length)]

    def fork(self):
        """A copy that grows on its own."""
        cdef History copy = History.__new__(History)
        copy.prompt_length, copy.length, copy.distinct = self.prompt_length, self.length, self.distinct
        copy.capacity, copy.table_size = self.capacity, self.table_size
        copy.items = <int32_t *>grown(NULL, self.capacity * sizeof(int32_t))
        copy.seen = <int32_t *>grown(NULL, self.table_size // 2 * sizeof(int32_t))
        copy.counts = <int32_t *>grown(NULL, self.table_size // 2 * sizeof(int32_t))
        copy.table = <int32_t *>grown(NULL, self.table_size * sizeof(int32_t))
        memcpy(copy.items, self.items, self.length * sizeof(int32_t))
        memcpy(copy.seen, self.seen, self.distinct * sizeof(int32_t))
        memcpy(copy.counts, self.counts, self.distinct * sizeof(int32_t))
        memcpy(copy.table, self.table, self.table_size * sizeof(int32_t))
        return copy

    cdef int reserve(self, int64_t capacity) except -1:
        if capacity > self.capacity:
            self.capacity = max(capacity, 2 * self.capacity)
            self.items = <int32_t *>grown(self.items, self.capacity * sizeof(int32_t))
        return 0

    cdef int rehash(self, int64_t size) except -1:
        """Makes the table twice as large as there may be distinct ids."""
        cdef int64_t i
        self.table = <int32_t *>grown(self.table, size * sizeof(int32_t))
        self.seen = <int32_t *>grown(self.seen, size // 2 * sizeof(int32_t))
        self.counts = <int32_t *>grown(self.counts, size // 2 * sizeof(int32_t))
        self.table_size = size
        for i in range(size):
            self.table[i] = 0
        for i in range(self.distinct):
            self.table[self.place(self.seen[i])] = <int32_t>(i + 1)
        return 0

    cdef int64_t place(self, int32_t token) noexcept nogil:
        """Where the table has the id, or where it goes."""
        cdef int64_t at = (<uint32_t>token * <uint32_t>2654435769u) & (self.table_size - 1)
        while self.table[at] != 0 and self.seen[self.table[at] - 1] != token:
            at = (at + 1) & (self.table_size - 1)
        return at

    cdef int add(self, int32_t token, int32_t generated) except -1:
        cdef int64_t at
        self.reserve(self.length + 1)
        self.items[self.length] = token
        self.length += 1
        if self.distinct == self.table_size // 2:
            self.rehash(2 * self.table_size)
        at = self.place(token)
        if self.table[at] == 0:
            self.seen[self.distinct] = token
            self.counts[self.distinct] = 0
            self.distinct += 1
            self.table[at] = <int32_t>self.distinct
        self.counts[self.table[at] - 1] += generated
        return 0


cdef class Words:
    """Token sequences with a value each: what is added to a last id where the history ends in the ids before it."""

    cdef int64_t count
    cdef int64_t *starts
    cdef int32_t *ids
    cdef float *values

    def __init__(self, words):
        cdef int64_t at = 0
        self.count = len(words)
        self.starts = <int64_t *>grown(NULL, (self.count + 1) * sizeof(int64_t))
        self.values = <float *>grown(NULL, (self.count + 1) * sizeof(float))
        self.ids = <int32_t *>grown(NULL, (sum(len(ids) for ids, _ in words) + 1) * sizeof(int32_t))
        for i, (ids, value) in enumerate(words):
            self.starts[i] = at
            self.values[i] = value
            for token in ids:
                self.ids[at] = token
                at += 1
        self.starts[self.count] = at

    def __dealloc__(self):
        free(self.starts)
        free(self.ids)
        free(self.values)

    cdef void apply(self, float *row, History history) noexcept nogil:
        cdef int64_t i, before
        for i in range(self.count):
            before = self.starts[i + 1] - self.starts[i] - 1
            if before <= history.length and memcmp(
                &history.items[history.length - before], &self.ids[self.starts[i]], before * sizeof(int32_t)
            ) == 0:
                row[self.ids[self.starts[i + 1] - 1]] += self.values[i]


cdef class Processors:
    """The processors of one request; holds no state of a continuation, so that all its samples and beams share it.

    Parameters
    ----------
    bias : list of (tuple of int, float)
        Added to the last id of each tuple where the history ends in the ids before it; one-id tuples always apply.
    repetition_penalty : float
        Logits of ids seen in prompt or output: divided if positive, multiplied if negative.
    presence_penalty, frequency_penalty : float
        Taken from ids seen in the output: once, and per occurrence.
    no_repeat_ngram_size : int
        Bars ids that would repeat an n-gram of prompt and output; 0 is off.
    bad_words : list of tuple of int
        Sequences that are never completed.
    min_new_tokens : int
        While fewer ids are generated, `end_ids` are barred.
    end_ids, suppress, begin_suppress : sequence of int
        `suppress` is barred always, `begin_suppress` as first generated id.
    """

    cdef readonly bint active
    cdef Words bias, bad_words, end_ids, suppress, begin_suppress
    cdef float repetition_penalty, presence_penalty, frequency_penalty
    cdef int64_t ngram, min_new_tokens

    def __init__(self, *, bias=(), float repetition_penalty=1, float presence_penalty=0, float frequency_penalty=0, int64_t no_repeat_ngram_size=0,
                 bad_words=(), int64_t min_new_tokens=0, end_ids=(), suppress=(), begin_suppress=()):
        barred = -INFINITY
        self.bias = Words(list(bias))
        self.bad_words = Words([(ids, barred) for ids in bad_words])
        self.end_ids, self.suppress, self.begin_suppress = (Words([((i,), barred) for i in ids]) for ids in (end_ids, suppress, begin_suppress))
        self.repetition_penalty, self.presence_penalty, self.frequency_penalty = repetition_penalty, presence_penalty, frequency_penalty
        self.ngram, self.min_new_tokens = no_repeat_ngram_size, min_new_tokens
        self.active = bool(
            bias or bad_words or suppress or begin_suppress or repetition_penalty != 1 or presence_penalty or frequency_penalty
            or no_repeat_ngram_size or (min_new_tokens and end_ids)
        )

    def apply(self, float[::1] row, History history):
        """Changes one row of logits in place.

        Parameters
        ----------
        row : (V,) float32
        history : History
        """
        cdef float *x = &row[0]
        self.bias.apply(x, history)
        if self.repetition_penalty != 1:
            self.penalize_repetition(x, history)
        if self.presence_penalty != 0 or self.frequency_penalty != 0:
            self.penalize_output(x, history)
        if 0 < self.ngram <= history.length + 1:
            self.bar_ngrams(x, history)
        self.bad_words.apply(x, history)
        if history.length - history.prompt_length < self.min_new_tokens:
            self.end_ids.apply(x, history)
        self.suppress.apply(x, history)
        if history.length == history.prompt_length:
            self.begin_suppress.apply(x, history)

    cdef void penalize_repetition(self, float *row, History history) noexcept nogil:
        cdef int64_t i
        cdef float *x
        for i in range(history.distinct):
            x = &row[history.seen[i]]
            x[0] = x[0] * self.repetition_penalty if x[0] < 0 else x[0] / self.repetition_penalty

    cdef void penalize_output(self, float *row, History history) noexcept nogil:
        cdef int64_t i
        for i in range(history.distinct):
            if history.counts[i] > 0:
                row[history.seen[i]] -= history.counts[i] * self.frequency_penalty + self.presence_penalty

    cdef void bar_ngrams(self, float *row, History history) noexcept nogil:
        cdef int64_t i, before = self.ngram - 1
        cdef const int32_t *tail = &history.items[history.length - before]
        for i in range(history.length - before):
            if memcmp(&history.items[i], tail, before * sizeof(int32_t)) == 0:
                row[history.items[i + before]] = -INFINITY


def keep_only(float[::1] row, ids):
    """Bars every id but these, in place.

    Parameters
    ----------
    row : (V,) float32
    ids : sequence of int
        Each from 0 to V - 1.
    """
    kept = {token: row[<int64_t>token] for token in ids}
    bar_all(row)
    for token, value in kept.items():
        row[<int64_t>token] = value


def force(float[::1] row, ids):
    """Makes these ids alone possible: 0 for them, minus infinity for all others, in place."""
    bar_all(row)
    for token in ids:
        row[<int64_t>token] = 0


cdef void bar_all(float[::1] row) noexcept nogil:
    cdef int64_t i
    for i in range(row.shape[0]):
        row[i] = -INFINITY


def apply_bitmask(float[::1] row, const uint32_t[::1] mask):
    """Bars every id whose bit is 0, in place; ids past the mask are barred.

    Parameters
    ----------
    row : (V,) float32
    mask : (ceil(V / 32),) uint32
        Bit i % 32 of word i // 32 is 1 where id i is allowed.
    """
    cdef int64_t i, words = mask.shape[0]
    for i in range(row.shape[0]):
        if i // 32 >= words or not (mask[i // 32] >> (i % 32)) & 1:
            row[i] = -INFINITY
