"""The precompiled character map of SentencePiece models: a double-array trie (Darts-clone) from UTF-8 strings to their replacements.

Layout: uint32 size of the trie in bytes, the trie's 32-bit units, then the replacements, each ended by NUL. Little-endian. Every step
of a lookup is checked against both sizes, so a damaged map gives wrong answers at worst.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from cygnet.errors import TokenizerError

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_write(uint8_t *at, uint32_t code)


cdef inline uint32_t unit_at(const unsigned char *units, size_t node) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, units + 4 * node, 4)
    return value


cdef inline size_t children_of(size_t node, uint32_t unit) noexcept nogil:
    """Where the children of a node lie, to be found by adding (exclusive or) their byte."""
    return node ^ (unit >> 10) << ((unit & (1 << 9)) >> 6)


cdef inline bint is_child(uint32_t unit, uint32_t byte) noexcept nogil:
    return unit & (<uint32_t> 1 << 31 | 0xFF) == byte


cdef class Charsmap:
    """A character map.

    Parameters
    ----------
    blob : bytes
        Empty for a map without rules.
    where : str
        The place of the map in its file, for messages.

    Raises
    ------
    TokenizerError
        Where the sizes do not fit.
    """

    def __init__(self, bytes blob, str where="precompiled_charsmap"):
        cdef Py_ssize_t size = len(blob), trie
        self._blob = blob
        self._units = <const unsigned char *> <const char *> blob
        self._texts = <const char *> blob
        self._unit_count = self._text_size = 0
        self._single = NULL
        if size == 0:
            return
        trie = int.from_bytes(blob[:4], "little") if size >= 4 else -1
        if trie < 4 or trie % 4 or trie > size - 4:
            raise TokenizerError(f"{where}: a trie of {trie} bytes does not fit a character map of {size} bytes")
        self._units += 4
        self._unit_count = trie // 4
        self._texts += 4 + trie
        self._text_size = size - 4 - trie
        self._fill_single()

    def __dealloc__(self):
        free(self._single)

    cdef int _fill_single(self) except -1:
        """Looks every character of the first plane up once."""
        cdef uint8_t key[4]
        cdef uint32_t code
        cdef Py_ssize_t length = 0
        self._single = <int32_t *> malloc(0x10000 * sizeof(int32_t))
        if self._single == NULL:
            raise MemoryError
        for code in range(0x10000):
            self._single[code] = <int32_t> self.find(<const char *> key, cyg_utf8_write(key, code), False, &length)
        return 0

    cdef Py_ssize_t find_single(self, uint32_t code, const char *key, Py_ssize_t size) noexcept nogil:
        """find() for the one character that a key of this size is."""
        cdef Py_ssize_t length = 0
        if code < 0x10000:
            return self._single[code] if self._single != NULL else -1
        return self.find(key, size, False, &length)

    cdef Py_ssize_t find(self, const char *key, Py_ssize_t size, bint longest, Py_ssize_t *length) noexcept nogil:
        """Place of the replacement for the shortest or longest rule that begins the key, -1 for none; its length in the key."""
        cdef size_t node, count = <size_t> self._unit_count
        cdef uint32_t unit, value
        cdef Py_ssize_t i, found = -1
        if count == 0:
            return -1
        node = children_of(0, unit_at(self._units, 0))
        for i in range(size):
            if key[i] == 0:
                break
            node ^= <unsigned char> key[i]
            if node >= count:
                break
            unit = unit_at(self._units, node)
            if not is_child(unit, <unsigned char> key[i]):
                break
            node = children_of(node, unit)
            if unit >> 8 & 1 and node < count:
                value = unit_at(self._units, node) & 0x7FFFFFFF
                if <Py_ssize_t> value < self._text_size:
                    found = value
                    length[0] = i + 1
                    if not longest:
                        break
        return found

    cdef bint begins(self, const uint8_t *key, size_t size) noexcept nogil:
        """Whether a rule may begin with these bytes."""
        cdef size_t node, i, count = <size_t> self._unit_count
        cdef uint32_t unit
        if count == 0:
            return False
        node = children_of(0, unit_at(self._units, 0))
        for i in range(size):
            node ^= key[i]
            if key[i] == 0 or node >= count:
                return False
            unit = unit_at(self._units, node)
            if not is_child(unit, key[i]):
                return False
            node = children_of(node, unit)
        return True

    cdef Py_ssize_t text_length(self, Py_ssize_t place) noexcept nogil:
        cdef Py_ssize_t end = place
        while end < self._text_size and self._texts[end] != 0:
            end += 1
        return end - place

    @property
    def empty(self):
        """Whether there are no rules."""
        return self._unit_count == 0

    def shortest(self, str text):
        """Replacement of the shortest rule that begins the text, or None."""
        return self._lookup(text, False)

    def longest(self, str text):
        """Replacement of the longest rule that begins the text, or None."""
        return self._lookup(text, True)

    def _lookup(self, str text, bint longest):
        cdef bytes key = text.encode()
        cdef Py_ssize_t length = 0, place = self.find(key, len(key), longest, &length)
        if place < 0:
            return None
        return self._texts[place:place + self.text_length(place)].decode("utf-8", "replace")
