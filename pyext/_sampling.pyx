"""From a row of logits to a token: temperature, top-k, top-p, min-p, typical, epsilon and eta filters, then one counter-based random number.

The filters run in exactly that order, each on the renormalised distribution that the one before it left. Nothing is ever sorted whole: top-k
keeps a heap of k values, top-p and typical find their border by quickselect on probability mass. The random numbers are Philox4x32-10 of
Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011): a pure function of (seed, sample, position).

A draw keeps the interpreter's lock: it takes microseconds, and giving the lock away for every row would let a busy Python thread hold up the
whole batch once a row.
"""

from cygnet._core._kernels cimport kernels
from cygnet._core._rows cimport kth_largest, largest
from libc.math cimport INFINITY, exp, expf, fabs, log, sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

# Below this the float32 exponential is zero.
cdef float LEAST_EXPONENT = -87.3


cdef uint64_t philox(uint64_t key, uint64_t low, uint64_t high, uint64_t *second) noexcept nogil:
    """The four words of one Philox4x32-10 block as two 64-bit numbers; the counter is (low, high), least word first."""
    cdef uint32_t k0 = <uint32_t>key, k1 = <uint32_t>(key >> 32)
    cdef uint32_t c0 = <uint32_t>low, c1 = <uint32_t>(low >> 32), c2 = <uint32_t>high, c3 = <uint32_t>(high >> 32)
    cdef uint64_t p0, p1
    cdef int i
    for i in range(10):
        p0 = <uint64_t>0xD2511F53u * c0
        p1 = <uint64_t>0xCD9E8D57u * c2
        c0 = <uint32_t>(p1 >> 32) ^ c1 ^ k0
        c1 = <uint32_t>p1
        c2 = <uint32_t>(p0 >> 32) ^ c3 ^ k1
        c3 = <uint32_t>p0
        k0 += 0x9E3779B9u
        k1 += 0xBB67AE85u
    second[0] = (<uint64_t>c3 << 32) | c2
    return (<uint64_t>c1 << 32) | c0


cdef double uniform_at(uint64_t seed, uint64_t sample, uint64_t position) noexcept nogil:
    cdef uint64_t unused
    return <double>(philox(seed, position, sample, &unused) >> 11) * (1.0 / 9007199254740992.0)


def philox_block(uint64_t key, uint64_t low, uint64_t high):
    """Both halves of one Philox4x32-10 block, for known-answer tests."""
    cdef uint64_t second = 0
    first = philox(key, low, high, &second)
    return first, second


def uniform(uint64_t seed, uint64_t sample, uint64_t position):
    """The number in [0, 1) that draws token `position` of sample `sample` of a request with this seed."""
    return uniform_at(seed, sample, position)


cdef struct Ranked:
    float key  # smaller comes first
    int32_t id  # breaks ties
    float weight


cdef inline bint before(const Ranked *a, const Ranked *b) noexcept nogil:
    return a.key < b.key or (a.key == b.key and a.id < b.id)


cdef inline void swap(Ranked *a, Ranked *b) noexcept nogil:
    cdef Ranked held = a[0]
    a[0] = b[0]
    b[0] = held


cdef Ranked border(Ranked *items, int64_t n, double mass, int64_t least) noexcept nogil:
    """The last item that stays when, in order, items stay while those before them weigh less than `mass` or are fewer than `least`."""
    cdef int64_t low = 0, high = n, i, store
    cdef double weight, passed = 0
    cdef Ranked pivot
    while high - low > 1:
        # Median of three as pivot, then everything that comes before it to the front.
        i = low + (high - low) // 2
        if before(&items[i], &items[low]):
            swap(&items[i], &items[low])
        if before(&items[high - 1], &items[low]):
            swap(&items[high - 1], &items[low])
        if before(&items[i], &items[high - 1]):
            swap(&items[i], &items[high - 1])
        pivot = items[high - 1]
        store = low
        weight = 0
        for i in range(low, high - 1):
            if before(&items[i], &pivot):
                weight += items[i].weight
                swap(&items[i], &items[store])
                store += 1
        swap(&items[store], &items[high - 1])
        # items[low:store] come before items[store], the pivot. If enough weight lies before the pivot it does not stay.
        if store > low and passed + weight >= mass and store >= least:
            high = store
        elif passed + weight + pivot.weight >= mass and store + 1 >= least or store + 1 == high:
            return pivot
        else:
            passed += weight + pivot.weight
            low = store + 1
    return items[low]


cdef class Sampler:
    """The filters of one request and the draw that follows them; one thread at a time.

    Parameters
    ----------
    temperature : float
        Divides the logits; 0 takes the most likely token and ignores the rest.
    top_k : int
        Keeps the k largest and all equal to the k-th; 0 keeps all.
    top_p : float
        Keeps a token if the tokens before it, in falling order of probability, sum to less than this.
    min_p : float
        Keeps probabilities of at least this share of the largest.
    typical_p : float
        Locally typical sampling (Meister et al. 2022): the tokens whose surprise is nearest to the entropy, up to this mass.
    epsilon_cutoff, eta_cutoff : float
        Truncation of Hewitt et al. 2022: an absolute threshold, and one that falls with the entropy; 0 switches off.
    min_tokens_to_keep : int
        top_p never keeps fewer.

    Examples
    --------
    >>> import numpy as np
    >>> Sampler(0.5, 0, 0.8, 0.0, 1.0, 0.0, 0.0).filter(np.array([3, 2, 1], np.float32)).tolist()
    [6.0, -inf, -inf]
    """

    cdef readonly float temperature
    cdef int64_t top_k, least
    cdef double top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff
    cdef int64_t capacity, count
    cdef int32_t *ids
    cdef float *x
    cdef float *weights
    cdef Ranked *ranked
    cdef double total

    def __init__(self, double temperature, int64_t top_k, double top_p, double min_p, double typical_p, double epsilon_cutoff, double eta_cutoff,
                 int64_t min_tokens_to_keep=1):
        self.temperature = temperature
        # A temperature too small for float32 is greedy in effect; it must not become a division by zero.
        if temperature > 0 and self.temperature < 1e-37:
            self.temperature = 1e-37
        self.top_k, self.top_p, self.min_p, self.typical_p = top_k, top_p, min_p, typical_p
        self.epsilon_cutoff, self.eta_cutoff, self.least = epsilon_cutoff, eta_cutoff, min_tokens_to_keep

    def __dealloc__(self):
        free(self.ids)
        free(self.x)
        free(self.weights)
        free(self.ranked)

    cdef int reserve(self, int64_t n) except -1:
        if n <= self.capacity:
            return 0
        free(self.ids)
        free(self.x)
        free(self.weights)
        free(self.ranked)
        self.ids = <int32_t *>malloc(n * sizeof(int32_t))
        self.x = <float *>malloc(n * sizeof(float))
        self.weights = <float *>malloc(n * sizeof(float))
        self.ranked = <Ranked *>malloc(n * sizeof(Ranked))
        self.capacity = n
        if self.ids == NULL or self.x == NULL or self.weights == NULL or self.ranked == NULL:
            self.capacity = 0
            raise MemoryError
        return 0

    def choose(self, const float[::1] row, uint64_t seed, uint64_t sample, uint64_t position):
        """The token drawn from one row of processed logits; -1 if no entry is above minus infinity.

        Parameters
        ----------
        row : (V,) float32
        seed, sample, position : int
            What the random number is a function of.
        """
        cdef int64_t n = row.shape[0]
        self.reserve(n)
        return self.draw(&row[0], n, uniform_at(seed, sample, position))

    def filter(self, float[::1] row):
        """Scaled logits with the removed entries at minus infinity, in place; returns the array."""
        cdef int64_t n = row.shape[0], i, kept = 0
        cdef float scale = self.temperature if self.temperature > 0 else 1
        self.reserve(n)
        if self.narrow(&row[0], n) >= 0:
            for i in range(n):
                if kept < self.count and self.ids[kept] == i:
                    row[i] = row[i] / scale if self.x[kept] > -INFINITY else -INFINITY
                    kept += 1
                else:
                    row[i] = -INFINITY
        return row.base

    cdef int64_t draw(self, const float *row, int64_t n, double u) noexcept nogil:
        cdef int64_t i, top
        cdef double bar, passed = 0
        if self.temperature == 0:
            return largest(row, n)
        top = self.narrow(row, n)
        if top < 0 or self.count == 1:
            return top if top < 0 else self.ids[0]
        bar = u * self.total
        for i in range(self.count):
            passed += self.weights[i]
            if passed > bar:
                return self.ids[i]
        i = self.count - 1
        while self.weights[i] == 0:
            i -= 1
        return self.ids[i]

    cdef int64_t narrow(self, const float *row, int64_t n) noexcept nogil:
        """Leaves the kept ids, in rising order, with their weights; returns the index of the largest logit or -1."""
        cdef int64_t top = largest(row, n)
        if top < 0:
            return -1
        self.gather(row, n, top)
        if self.top_p < 1:
            self.keep_mass(self.top_p, self.least)
        if self.min_p > 0:
            self.keep_above(self.min_p * self.heaviest())
        if self.typical_p < 1:
            self.keep_typical()
        if self.epsilon_cutoff > 0:
            self.keep_above(self.epsilon_cutoff * self.total)
        if self.eta_cutoff > 0:
            self.keep_above(min(self.eta_cutoff, sqrt(self.eta_cutoff) * exp(-self.entropy())) * self.total)
        return top

    cdef void gather(self, const float *row, int64_t n, int64_t top) noexcept nogil:
        """Scales by the temperature around the largest logit, so that nothing overflows, and applies top-k."""
        cdef float scale = self.temperature if self.temperature > 0 else 1
        if 0 < self.top_k < n:
            self.gather_from(row, n, kth_largest(row, n, self.top_k, self.x), row[top], scale)
        elif row[top] == INFINITY:
            self.gather_from(row, n, INFINITY, row[top], scale)
        else:
            self.gather_all(row, n, top, scale)
        self.sum()

    cdef void gather_from(self, const float *row, int64_t n, float bar, float top, float scale) noexcept nogil:
        """The entries of at least `bar`."""
        cdef int64_t i
        cdef float x
        self.count = 0
        for i in range(n):
            if row[i] >= bar and row[i] > -INFINITY:
                # Equal entries include infinite ones, whose difference is not a number.
                x = 0 if row[i] == top else (row[i] - top) / scale
                self.ids[self.count] = <int32_t>i
                self.x[self.count] = x
                self.weights[self.count] = expf(x) if x > LEAST_EXPONENT else 0
                self.count += 1

    cdef void gather_all(self, const float *row, int64_t n, int64_t top, float scale) noexcept nogil:
        """Every entry; what is barred or not a number gets no weight."""
        cdef int64_t i
        cdef float x, unit, highest = row[top]
        for i in range(n):
            x = (row[i] - highest) / scale
            x = x if x > -INFINITY else -INFINITY
            self.ids[i] = <int32_t>i
            self.x[i] = x
            self.weights[i] = x
        kernels().softmax(self.weights, n, NULL, 0, 1, n)
        # The heaviest weighs 1 everywhere, so that the logarithm of a weight is its x.
        unit = 1 / self.weights[top]
        for i in range(n):
            self.weights[i] *= unit
        self.count = n

    cdef void sum(self) noexcept nogil:
        cdef int64_t i, whole = self.count - self.count % 4
        cdef double part[4]
        part[0] = part[1] = part[2] = part[3] = 0
        for i in range(0, whole, 4):
            part[0] += self.weights[i]
            part[1] += self.weights[i + 1]
            part[2] += self.weights[i + 2]
            part[3] += self.weights[i + 3]
        for i in range(whole, self.count):
            part[0] += self.weights[i]
        self.total = (part[0] + part[1]) + (part[2] + part[3])

    cdef float heaviest(self) noexcept nogil:
        cdef int64_t i
        cdef float best = 0
        for i in range(self.count):
            best = self.weights[i] if self.weights[i] > best else best
        return best

    cdef double entropy(self) noexcept nogil:
        """Of the kept tokens, in nats."""
        cdef int64_t i
        cdef double moment = 0
        for i in range(self.count):
            moment += <double>self.weights[i] * self.x[i] if self.weights[i] > 0 else 0
        return log(self.total) - moment / self.total

    cdef inline void move(self, int64_t to, int64_t source) noexcept nogil:
        self.ids[to] = self.ids[source]
        self.x[to] = self.x[source]
        self.weights[to] = self.weights[source]

    cdef void keep_above(self, double bar) noexcept nogil:
        """Keeps weights of at least `bar`, and the heaviest ones always."""
        cdef int64_t i, kept = 0
        cdef float best = self.heaviest()
        for i in range(self.count):
            if self.weights[i] >= bar or self.weights[i] == best:
                self.move(kept, i)
                kept += 1
        self.count = kept
        self.sum()

    cdef void keep_mass(self, double share, int64_t least) noexcept nogil:
        """Keeps the likeliest tokens up to a share of the mass."""
        cdef int64_t i, n = 0, kept = 0
        cdef Ranked last, item
        # Tokens below this weigh less than 1 - share all together, so that the border is never among them.
        cdef double bar = 0.999 * (1 - share) * self.total / self.count if least == 1 else 0
        for i in range(self.count):
            if self.weights[i] >= bar:
                self.ranked[n].key = -self.x[i]
                self.ranked[n].id = self.ids[i]
                self.ranked[n].weight = self.weights[i]
                n += 1
        last = border(self.ranked, n, share * self.total, least)
        for i in range(self.count):
            item.key = -self.x[i]
            item.id = self.ids[i]
            if not before(&last, &item):
                self.move(kept, i)
                kept += 1
        self.count = kept
        self.sum()

    cdef void keep_typical(self) noexcept nogil:
        cdef int64_t i, kept = 0
        cdef double entropy = self.entropy(), shift = log(self.total)
        cdef Ranked last
        for i in range(self.count):
            self.ranked[i].key = <float>fabs(shift - self.x[i] - entropy)
            self.ranked[i].id = self.ids[i]
            self.ranked[i].weight = self.weights[i]
        last = border(self.ranked, self.count, self.typical_p * self.total, 1)
        for i in range(self.count):
            if <float>fabs(shift - self.x[i] - entropy) <= last.key:
                self.move(kept, i)
                kept += 1
        self.count = kept
        self.sum()
