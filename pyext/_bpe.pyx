"""Byte pair encoding over csrc/bpe.c: the merge tables of a vocabulary, its pieces with their sizes, and the compiled lane."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.dict cimport PyDict_GetItem
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from cygnet._core._gguf cimport Strings
from cygnet._core._lane cimport Lane, Workspace, cyg_ids

from json import loads

from cygnet.errors import TokenizerError

MAX_ID = CYG_BPE_MAX_ID
MAX_MERGES = CYG_BPE_MAX_MERGES
RULES = {
    "none": CYG_RULE_NONE, "gpt2": CYG_RULE_GPT2, "cl100k": CYG_RULE_CL100K, "o200k": CYG_RULE_O200K, "deepseek": CYG_RULE_DEEPSEEK,
}
CUTS = {"each_number": CYG_CUT_EACH_NUMBER, "three_numbers": CYG_CUT_THREE_NUMBERS, "number_run": CYG_CUT_NUMBER_RUN, "cjk": CYG_CUT_CJK}


cdef class Bpe


cdef class Merges:
    """Merge rules by id: left, right and what they become, in order of rank.

    Parameters
    ----------
    vocab : dict of str -> int
    merges : list, bytes or Strings
        Each "left right" or [left, right]; bytes are the JSON text of such a list, Strings an array "left right" in a GGUF file.
    prefix : str
        What the merged token drops from the beginning of its right part.
    where : str
        Path in the file, for error messages.
    """

    cdef int32_t *data
    cdef readonly Py_ssize_t count

    def __init__(self, dict vocab, object merges, str prefix, str where):
        if type(merges) is bytes:
            if self.read(vocab, (<bytes> merges).count(b",") + 1, merges, None, len(prefix.encode())):
                return
            try:
                merges = loads(merges)
            except (ValueError, RecursionError) as error:
                raise TokenizerError(f"{where} is no valid JSON: {error}") from None
        elif type(merges) is Strings:
            if self.read(vocab, (<Strings> merges).count, None, merges, 0):
                return
            merges = merges.decoded()
        self.look_up(vocab, merges, len(prefix), where)

    cdef bint read(self, dict vocab, size_t capacity, bytes json, Strings strings, size_t prefix_size) except -1:
        """Reads JSON text or an array in a file directly; False where anything is wrong with it, which the slow way then names."""
        cdef Bpe tokens = Bpe.__new__(Bpe)
        cdef int64_t found
        self.reserve(capacity)
        tokens.vocab = vocab
        if cyg_bpe_init(&tokens.c, len(vocab)):
            raise MemoryError
        tokens.add_tokens(None)
        if json is not None:
            found = cyg_json_read_merges(&tokens.c, <const uint8_t *> PyBytes_AS_STRING(json), len(json), prefix_size, self.data, capacity)
        else:
            found = cyg_gguf_read_merges(&tokens.c, strings.start, strings.count, self.data)
        if not 0 <= found <= CYG_BPE_MAX_MERGES:
            return False
        self.count = found
        self.data = <int32_t *> PyMem_Realloc(self.data, (3 * found + 1) * sizeof(int32_t))
        return True

    cdef int reserve(self, size_t count) except -1:
        PyMem_Free(self.data)
        self.data = <int32_t *> PyMem_Malloc((3 * count + 1) * sizeof(int32_t))
        if self.data == NULL:
            raise MemoryError
        return 0

    cdef int look_up(self, dict vocab, list merges, size_t prefix_length, str where) except -1:
        cdef Py_ssize_t i
        cdef str left, right
        if len(merges) > CYG_BPE_MAX_MERGES:
            raise TokenizerError(f"{where} holds {len(merges)} merges; at most {CYG_BPE_MAX_MERGES} can be used")
        self.count = len(merges)
        self.reserve(self.count)
        for i in range(self.count):
            left, right = parts_of(merges[i], where, i)
            self.data[3 * i] = self.find(vocab, left, where, i)
            self.data[3 * i + 1] = self.find(vocab, right, where, i)
            self.data[3 * i + 2] = self.find(vocab, left + right[prefix_length:] if prefix_length else left + right, where, i)
        return 0

    cdef int32_t find(self, dict vocab, str token, str where, Py_ssize_t i) except -1:
        cdef void *found = <void *> PyDict_GetItem(vocab, token)
        if found == NULL:
            raise TokenizerError(f"{where}[{i}]: {token[:60]!r} is not in the vocabulary")
        return <object> found

    def __dealloc__(self):
        PyMem_Free(self.data)

    def __getitem__(self, Py_ssize_t i):
        """(left, right, merged) ids of the merge of rank i."""
        if not 0 <= i < self.count:
            raise IndexError(i)
        return self.data[3 * i], self.data[3 * i + 1], self.data[3 * i + 2]


cdef tuple parts_of(object merge, str where, Py_ssize_t i):
    cdef list parts
    if type(merge) is str:
        parts = (<str> merge).split(" ")
    elif type(merge) is list:
        parts = <list> merge
    else:
        parts = []
    if len(parts) != 2 or type(parts[0]) is not str or type(parts[1]) is not str:
        raise TokenizerError(f"{where}[{i}] must be two tokens, \"left right\" or [left, right]")
    return parts[0], parts[1]


cdef class Bpe:
    """Merge tables of one vocabulary.

    Parameters
    ----------
    vocab : dict of str -> int
    merges : Merges
    byte_level : bool
        Words are given as bytes, which the vocabulary spells in the byte-level alphabet; else as UTF-8 text.
    byte_ids : list of 256 int
        Id of each byte's symbol (byte-level) or fallback token, -1 where there is none.
    unk_id : int
        Id of the unknown token, -1 to drop unknown characters.
    prefix, suffix : str
        What the vocabulary puts before characters that are not first in a word and after the last one.
    """

    cdef cyg_bpe c
    cdef cyg_bpe_scratch scratch
    cdef uint8_t *spelled
    cdef readonly dict vocab
    cdef readonly bint byte_level

    def __init__(self, dict vocab, Merges merges, *, bint byte_level, list byte_ids, int32_t unk_id, bint fuse_unk, bint byte_fallback,
                 bint ignore_merges, str prefix="", str suffix="", const uint8_t[::1] alphabet=None):
        cdef Py_ssize_t i
        self.vocab = vocab
        self.byte_level = byte_level
        if cyg_bpe_init(&self.c, len(vocab)) or cyg_pairs_init(&self.c.pairs, merges.data, merges.count, largest_id(vocab)):
            raise MemoryError
        self.c.byte_level = byte_level
        self.c.unk = unk_id
        self.c.fuse_unk = fuse_unk
        self.c.byte_fallback = byte_fallback
        self.c.ignore_merges = ignore_merges
        for i in range(256):
            self.c.byte_id[i] = byte_ids[i]
        self.add_tokens(alphabet)
        if not byte_level:
            self.add_chars(prefix, suffix)
            # Where whole words are looked up before any merge, a word must not be cut.
            if not (prefix or suffix or ignore_merges) and self.symbols_are_characters(merges):
                self.add_neighbours(merges)
        if cyg_bpe_finish(&self.c):
            raise MemoryError
        if byte_level and (cyg_bpe_find_starts(&self.c, merges.data, merges.count)
                           or not ignore_merges and cyg_bpe_find_whole(&self.c, merges.data, merges.count)):
            raise MemoryError

    def __dealloc__(self):
        cyg_bpe_free(&self.c)
        cyg_bpe_scratch_free(&self.scratch)
        free(self.spelled)

    cdef int add_tokens(self, const uint8_t[::1] alphabet) except -1:
        """Tokens by their bytes; in a byte-level vocabulary those outside the alphabet can never be a word."""
        cdef Py_ssize_t size, total = 0, used = 0
        cdef const char *text
        cdef uint8_t *out
        cdef int32_t token_id
        for token in self.vocab:
            PyUnicode_AsUTF8AndSize(token, &size)
            total += size
        self.spelled = out = <uint8_t *> malloc(total + 16)
        if out == NULL:
            raise MemoryError
        for token, number in self.vocab.items():
            text = PyUnicode_AsUTF8AndSize(token, &size)
            token_id = number
            if self.byte_level:
                size = spell_out(out + used, <const uint8_t *> text, size, &alphabet[0])
                if size < 0:
                    continue
            else:
                memcpy(out + used, text, size)
            if cyg_bpe_add_token(&self.c, out + used, size, token_id):
                raise MemoryError
            used += size
        if cyg_bpe_index_tokens(&self.c):
            raise MemoryError
        return 0

    cdef int add_chars(self, str prefix, str suffix) except -1:
        """Symbols of single characters, plain and with the affixes."""
        cdef unsigned variant
        cdef str affix
        cdef bytes data
        for variant in range(2):
            affix = suffix if variant else prefix
            data = affix.encode()
            if len(data) > 64:
                raise TokenizerError(f"affix {affix[:40]!r} is longer than 64 bytes")
            memcpy(self.c.affix[variant], PyBytes_AS_STRING(data), len(data))
            self.c.affix_size[variant] = len(data)
        for variant in range(4):
            if (variant & 1 and not prefix) or (variant & 2 and not suffix):
                continue
            before, after = prefix if variant & 1 else "", suffix if variant & 2 else ""
            length = len(before) + len(after) + 1
            for token, number in self.vocab.items():
                if len(<str> token) == length and (<str> token).startswith(before) and (<str> token).endswith(after):
                    if cyg_bpe_add_char(&self.c, variant, ord((<str> token)[len(before)]), number):
                        raise MemoryError
        return 0

    cdef bint symbols_are_characters(self, Merges merges):
        """Whether merging begins with whole characters everywhere: no byte token is ever merged, no unknown characters are fused."""
        cdef Py_ssize_t i, b
        if self.c.unk >= 0 and self.c.fuse_unk:
            if not self.c.byte_fallback or min([self.c.byte_id[b] for b in range(256)]) < 0:
                return False
        if not self.c.byte_fallback:
            return True
        fallback = {self.c.byte_id[b] for b in range(256)}
        for i in range(merges.count):
            if merges.data[3 * i] in fallback or merges.data[3 * i + 1] in fallback:
                return False
        return True

    cdef int add_neighbours(self, Merges merges) except -1:
        cdef Py_ssize_t i, size
        cdef const char *text
        made = bytearray(max(self.vocab.values(), default=0) + 1)
        for i in range(merges.count):
            made[merges.data[3 * i + 2]] = 1
        if cyg_bpe_add_neighbours(&self.c, NULL, 0):
            raise MemoryError
        for token, number in self.vocab.items():
            if made[number]:
                text = PyUnicode_AsUTF8AndSize(token, &size)
                if cyg_bpe_add_neighbours(&self.c, <const uint8_t *> text, size):
                    raise MemoryError
        return 0

    def pieces(self, bytes word):
        """Ids of a word and the number of bytes that each stands for: two lists."""
        cdef cyg_ids ids, sizes
        cdef const uint8_t *data = <const uint8_t *> PyBytes_AS_STRING(word)
        memset(&ids, 0, sizeof(ids))
        memset(&sizes, 0, sizeof(sizes))
        try:
            if cyg_bpe_piece(&self.c, &self.scratch, data, len(word), &ids, &sizes):
                raise MemoryError
            return [ids.data[i] for i in range(ids.size)], [sizes.data[i] for i in range(sizes.size)]
        finally:
            free(ids.data)
            free(sizes.data)

    def symbols(self, bytes word):
        """Ids of a word's symbols before any merge."""
        cdef cyg_ids ids
        memset(&ids, 0, sizeof(ids))
        try:
            if cyg_bpe_symbols(&self.c, &self.scratch, <const uint8_t *> PyBytes_AS_STRING(word), len(word), &ids):
                raise MemoryError
            return [ids.data[i] for i in range(ids.size)]
        finally:
            free(ids.data)

    def rank(self, int32_t left, int32_t right):
        """(rank, merged id) of a pair, or None."""
        cdef uint32_t rank = cyg_bpe_rank(&self.c, left, right)
        return None if rank == CYG_NO_RANK else (rank, self.c.pairs.merged[rank])


cdef int32_t largest_id(dict vocab) except -1:
    cdef int32_t number, largest = 0
    for number in vocab.values():
        largest = max(largest, number)
    return largest


cdef Py_ssize_t spell_out(uint8_t *out, const uint8_t *text, Py_ssize_t size, const uint8_t *alphabet) noexcept:
    """Bytes that a byte-level token spells, their number returned; -1 for a character outside the alphabet.

    alphabet: for code points below 512, two bytes each: the byte, and whether there is one.
    """
    cdef Py_ssize_t i = 0, n = 0
    cdef uint32_t c
    while i < size:
        if text[i] < 0x80:
            c = text[i]
            i += 1
        elif text[i] < 0xC8:
            c = (text[i] & 31) << 6 | (text[i + 1] & 63)
            i += 2
        else:
            return -1
        if not alphabet[2 * c + 1]:
            return -1
        out[n] = alphabet[2 * c]
        n += 1
    return n


cdef struct lane_state:
    cyg_bpe_space space
    uint8_t *copy
    size_t copy_capacity
    cyg_text_space text


cdef class BpeWorkspace(Workspace):
    cdef lane_state own

    def __cinit__(self):
        self.state = &self.own

    def __dealloc__(self):
        cyg_bpe_space_free(&self.own.space)
        free(self.own.copy)
        cyg_text_space_free(&self.own.text)


cdef class ByteLevelLane(Lane):
    """UTF-8 cut by a hand-written rule, each piece merged as bytes.

    Parameters
    ----------
    bpe : Bpe
    words : str
        Key of RULES.
    cuts : iterable of str
        Keys of CUTS.
    digits : int
        Numbers in a group; 0: no limit.
    prefix_space : bool
        Each stretch begins with a space, which is put there where it is missing.
    """

    cdef Bpe bpe
    cdef cyg_split_rule rule
    cdef bint prefix_space

    def __init__(self, Bpe bpe, str words, cuts=(), unsigned digits=0, bint prefix_space=False):
        self.bpe = bpe
        self.rule.words = RULES[words]
        self.rule.cuts = sum(CUTS[c] for c in cuts)
        self.rule.digits = digits
        self.prefix_space = prefix_space

    cpdef Workspace workspace(self):
        return BpeWorkspace()

    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        cdef lane_state *state = <lane_state *> space.state
        if self.prefix_space and length and text[0] != 32:
            if reserve_copy(state, length + 1):
                return -1
            state.copy[0] = 32
            memcpy(state.copy + 1, text, length)
            text = state.copy
            length += 1
        return cyg_bpe_encode(&self.bpe.c, &self.rule, &state.space, text, length, &space.ids)


cdef int reserve_copy(lane_state *state, size_t length) noexcept nogil:
    cdef uint8_t *data
    if length <= state.copy_capacity:
        return 0
    data = <uint8_t *> realloc(state.copy, length + length // 2)
    if data == NULL:
        return -1
    state.copy = data
    state.copy_capacity = length + length // 2
    return 0


PREPEND = {"never": CYG_PREPEND_NEVER, "sign": CYG_PREPEND_SIGN, "missing": CYG_PREPEND_MISSING, "first": CYG_PREPEND_FIRST}


cdef class SpaceSignLane(Lane):
    """UTF-8 whose spaces become a visible sign, merged by characters.

    Parameters
    ----------
    bpe : Bpe
    sign : str
    prepend : str
        Key of PREPEND.
    replace_spaces : bool
    split_at_sign : bool
    """

    cdef Bpe bpe
    cdef cyg_text_rule rule

    def __init__(self, Bpe bpe, str sign, str prepend, bint replace_spaces, bint split_at_sign):
        cdef bytes data = sign.encode()
        self.bpe = bpe
        memcpy(self.rule.sign, PyBytes_AS_STRING(data), len(data))
        self.rule.sign_size = len(data)
        self.rule.prepend = PREPEND[prepend]
        self.rule.replace_spaces = replace_spaces
        self.rule.split_at_sign = split_at_sign

    cpdef Workspace workspace(self):
        return BpeWorkspace()

    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        cdef lane_state *state = <lane_state *> space.state
        return cyg_bpe_encode_text(&self.bpe.c, &self.rule, &state.space, &state.text, text, length, first, &space.ids)


def split(str words, cuts, unsigned digits, bytes text):
    """The pieces that a hand-written rule cuts UTF-8 text into: a list of bytes."""
    cdef cyg_split_rule rule
    cdef cyg_classes classes
    cdef cyg_splitter splitter
    cdef size_t ends[64]
    cdef size_t begin = 0, count, k
    rule.words = RULES[words]
    rule.cuts = sum(CUTS[c] for c in cuts)
    rule.digits = digits
    memset(&classes, 0, sizeof(classes))
    if cyg_classify(&classes, <const uint8_t *> PyBytes_AS_STRING(text), len(text)):
        raise MemoryError
    cyg_split_begin(&splitter, &rule, &classes, <const uint8_t *> PyBytes_AS_STRING(text), len(text))
    out = []
    while True:
        count = cyg_split_next(&splitter, ends, 64)
        if not count:
            break
        for k in range(count):
            out.append(text[begin:ends[k]])
            begin = ends[k]
    cyg_classes_free(&classes)
    return out
