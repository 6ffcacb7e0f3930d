"""Vocabularies without an object for each token (csrc/vocabulary.h), and the large parts of a tokenizer.json that they are read from."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.math cimport isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, strlen

from array import array

from cygnet._core._trie cimport cyg_trie_build, cyg_trie_key

cdef extern from "Python.h":
    char *PyOS_double_to_string(double value, char format, int precision, int flags, int *kind) except NULL
    void PyMem_Free(void *memory)


def cut_large_parts(bytes json):
    """A tokenizer.json whose model has true in place of its vocabulary and its merges, and the bytes of these by their names."""
    cdef const char *keys[2]
    cdef cyg_json_span spans[2]
    cdef Py_ssize_t i
    keys[0], keys[1] = b"vocab", b"merges"
    cyg_json_find_in_model(<const uint8_t *> PyBytes_AS_STRING(json), len(json), keys, 2, spans)
    found = sorted([(spans[i].begin, spans[i].end, keys[i].decode()) for i in range(2) if spans[i].end])
    parts, rest, done = {}, [], 0
    for begin, end, name in found:
        if json[begin] in b"{[":
            parts[name] = json[begin:end]
            rest += (json[done:begin], b"true")
            done = end
    return b"".join([*rest, json[done:]]), parts


cdef class Vocabulary:
    """Tokens by id and ids by token.

    Tokens that are no valid UTF-8 are spelled with lone surrogates, as Python's surrogateescape has it.

    Parameters
    ----------
    ids : dict of str -> int, not negative
    """

    def __init__(self, dict ids):
        for token, token_id in ids.items():
            self.add(token, token_id)
        cyg_vocabulary_sort(&self.c)
        self.index()

    def __dealloc__(self):
        cyg_vocabulary_free(&self.c)

    @staticmethod
    def from_json(bytes json):
        """The vocabulary of the text {"token": id, ...}; None where anything is wrong with it."""
        cdef Vocabulary self = Vocabulary.__new__(Vocabulary)
        cdef const uint8_t *text = <const uint8_t *> PyBytes_AS_STRING(json)
        cdef size_t size = len(json)
        cdef int state
        with nogil:
            state = cyg_vocabulary_read_ids(&self.c, text, size)
        if state < 0:
            raise MemoryError
        if state == 0 or not cyg_vocabulary_sort(&self.c):
            return None
        self.index()
        return self if self.trie.trie.keys == self.c.count else None

    cdef int add(self, str token, int32_t id) except -1:
        cdef bytes spelled = token.encode("utf-8", "surrogateescape")
        if cyg_vocabulary_add(&self.c, <const uint8_t *> PyBytes_AS_STRING(spelled), len(spelled), id):
            raise MemoryError
        return 0

    cdef int index(self) except -1:
        """Builds the trie; of equal tokens the one with the largest id counts."""
        cdef cyg_trie_key *keys = <cyg_trie_key *> malloc((self.c.count + 1) * sizeof(cyg_trie_key))
        cdef size_t i
        cdef int failed
        if keys == NULL:
            raise MemoryError
        self.trie = Trie.__new__(Trie)
        with nogil:
            for i in range(self.c.count):
                keys[i].bytes = <const char *> self.c.bytes + self.c.rows[i].start
                keys[i].size = self.c.rows[i].size
                keys[i].value = self.c.rows[i].id
            failed = cyg_trie_build(&self.trie.trie, keys, self.c.count)
            free(keys)
        if failed:
            raise MemoryError(f"no memory for a trie of {self.c.count} keys")
        return 0

    def __len__(self):
        return self.c.count

    def id_of(self, str token):
        """Id of a token, or None."""
        try:
            return self.trie.find(token.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError:
            return None

    def spelling(self, token_id):
        """The token of an id, or None."""
        cdef const cyg_spelling *row = cyg_vocabulary_find(&self.c, token_id) if 0 <= token_id <= 0x7FFFFFFF else NULL
        if row == NULL:
            return None
        return (<const char *> self.c.bytes)[row.start:row.start + row.size].decode("utf-8", "surrogateescape")


def read_ids(bytes json):
    """The text {"token": id, ...} as a dict, quicker than JSON is read in general; None where anything is wrong with it, or two tokens have one id."""
    cdef Vocabulary found = Vocabulary.__new__(Vocabulary)
    cdef size_t i
    cdef dict out = {}
    if cyg_vocabulary_read_ids(&found.c, <const uint8_t *> PyBytes_AS_STRING(json), len(json)) != 1:
        return None
    for i in range(found.c.count):
        out[PyUnicode_DecodeUTF8(<const char *> found.c.bytes + found.c.rows[i].start, found.c.rows[i].size, NULL)] = found.c.rows[i].id
    return out if <size_t> len(out) == found.c.count and cyg_vocabulary_sort(&found.c) else None


cdef class Pieces(Vocabulary):
    """A vocabulary whose tokens have scores; ids count them.

    Parameters
    ----------
    rows : sequence of (str, float)

    Attributes
    ----------
    scores : array of float
        By id.
    """

    cdef readonly object scores

    def __init__(self, rows):
        for i, (piece, _) in enumerate(rows):
            self.add(piece, i)
        self.scores = array("d", [score for _, score in rows])
        self.index()

    @staticmethod
    def from_json(bytes json):
        """The pieces of the text [["piece", score], ...]; None where anything is wrong with it."""
        cdef Pieces self = Pieces.__new__(Pieces)
        cdef const uint8_t *text = <const uint8_t *> PyBytes_AS_STRING(json)
        cdef size_t size = len(json)
        cdef double *scores = NULL
        cdef int state
        try:
            with nogil:
                state = cyg_vocabulary_read_scores(&self.c, text, size, &scores)
            if state < 0:
                raise MemoryError
            if state == 0:
                return None
            self.scores = array("d", (<char *> scores)[:self.c.count * sizeof(double)] if self.c.count else b"")
        finally:
            free(scores)
        self.index()
        return self

    def words_are_apart(self, str sign):
        """Whether no piece reaches from one word into the next: each has a sign at most in front, and the sign alone is one."""
        cdef bytes encoded = sign.encode()
        cdef const char *wanted = encoded
        cdef const char *piece
        cdef size_t i, at, length = len(encoded)
        for i in range(self.c.count):
            piece = <const char *> self.c.bytes + self.c.rows[i].start
            for at in range(1, max(self.c.rows[i].size, length) - length + 1):
                if piece[at] == wanted[0] and memcmp(piece + at, wanted, length) == 0:
                    return False
        return self.id_of(sign) is not None


cdef double read_score(double number) except? -1:
    """A number as tokenizer.json's own library would have read it."""
    cdef char *spelled = PyOS_double_to_string(number, c"r", 0, 0, NULL)
    cdef cyg_json text
    text.at = <const uint8_t *> spelled
    text.end = text.at + strlen(spelled)
    cyg_json_read_score(&text, &number)
    PyMem_Free(spelled)
    return number


def read_pieces(list rows):
    """(piece, score) of every row of a tokenizer.json's vocabulary, and the index of the first row that is none; -1 for no such row."""
    cdef Py_ssize_t i
    cdef list out = []
    for i in range(len(rows)):
        row = rows[i]
        if type(row) is not list or len(<list> row) != 2 or type((<list> row)[0]) is not str or type((<list> row)[1]) not in (int, float):
            return out, i
        number = float((<list> row)[1])
        if not isfinite(number):
            return out, i
        out.append(((<list> row)[0], read_score(number)))
    return out, -1
