"""Tries over vocabularies: csrc/trie.h with strings or bytes from Python as keys."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.unicode cimport PyUnicode_AsUTF8AndSize


cdef class Trie:
    """A trie from UTF-8 strings to numbers.

    Parameters
    ----------
    keys : sequence of str or bytes
        Of equal keys the one with the largest value counts.
    values : sequence of int, not negative
    """

    def __init__(self, keys, values):
        keys, values = list(keys), list(values)
        cdef Py_ssize_t count = len(keys), i, size = 0
        cdef cyg_trie_key *rows = <cyg_trie_key *> PyMem_Malloc((count + 1) * sizeof(cyg_trie_key))
        cdef int failed
        if rows == NULL:
            raise MemoryError
        try:
            for i in range(count):
                key = keys[i]
                if isinstance(key, str):
                    try:
                        rows[i].bytes = PyUnicode_AsUTF8AndSize(key, &size)
                        rows[i].size = size
                    except UnicodeEncodeError:
                        key = keys[i] = key.encode("utf-8", "surrogateescape")  # a file's bytes that are no UTF-8
                if isinstance(key, bytes):
                    rows[i].bytes = <bytes> key
                    rows[i].size = len(<bytes> key)
                rows[i].value = values[i]
            with nogil:
                failed = cyg_trie_build(&self.trie, rows, count)
        finally:
            PyMem_Free(rows)
        if failed:
            raise MemoryError(f"no memory for a trie of {count} keys")

    def __dealloc__(self):
        cyg_trie_free(&self.trie)

    def find(self, bytes key):
        """Value of exactly this key, or None."""
        cdef int32_t value = cyg_trie_find(&self.trie, key, len(key))
        return None if value < 0 else value

    def prefixes(self, bytes text):
        """(length, value) of every key that begins the text, shortest first."""
        cdef int32_t node = 0
        cdef Py_ssize_t i
        out = []
        if self.trie.units[0].value >= 0:
            out.append((0, self.trie.units[0].value))
        for i in range(len(text)):
            node = cyg_trie_step(self.trie.units, node, text[i])
            if node < 0:
                break
            if self.trie.units[node].value >= 0:
                out.append((i + 1, self.trie.units[node].value))
        return out

    @property
    def size(self):
        """Number of units, of 12 bytes each."""
        return self.trie.size
