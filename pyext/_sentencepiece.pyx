"""SentencePiece's own normalization, its character and word models, and the lane from UTF-8 text to the ids of any of its models."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcmp, memset

from cygnet._core._charsmap cimport Charsmap
from cygnet._core._lane cimport Lane, Workspace
from cygnet._core._segmenter cimport Scratch, Segmenter, cyg_text, cyg_text_copy, cyg_text_free, cyg_text_put
from cygnet._core._trie cimport Trie, cyg_trie_find, cyg_trie_step, cyg_trie_unit

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_length(uint8_t first)

cdef const char *SPACE_SIGN = b"\xe2\x96\x81"


cdef class Rewriter:
    """The normalization of a SentencePiece model.

    Parameters
    ----------
    charsmap : Charsmap
    kept : sequence of str
        User-defined pieces, which no rule touches.
    dummy_prefix, remove_extra_whitespaces, escape_whitespaces : bool
        The model's NormalizerSpec.
    suffix : bool
        The dummy space goes to the end (treat_whitespace_as_suffix).
    word_by_word : bool
        As llama.cpp does it: a space before each word that follows white space, and what begins like a user-defined piece is kept as far
        as it does.
    """

    def __init__(
        self, Charsmap charsmap, kept, bint dummy_prefix, bint remove_extra_whitespaces, bint escape_whitespaces, bint suffix, bint word_by_word=False
    ):
        cdef uint8_t c
        cdef bytes sign = SPACE_SIGN if escape_whitespaces else b" "
        self.charsmap = charsmap
        kept = list(kept)
        self.kept = Trie(kept, range(len(kept)))
        self.dummy, self.squeeze, self.escape, self.suffix = dummy_prefix, remove_extra_whitespaces, escape_whitespaces, suffix
        self.word_by_word = word_by_word
        self.sign = sign
        self.space, self.space_size = <const uint8_t *> <const char *> self.sign, len(sign)
        for c in range(128):
            self.reach[c] = self.reach_of(c)
        self.space_reach, self.reach[32] = self.reach[32], ANY_WAY

    cdef Reach reach_of(self, uint8_t c):
        """How far an ASCII character has to be looked at together with what follows."""
        cdef uint8_t key[2]
        cdef int other
        key[0] = c
        if cyg_trie_step(self.kept.trie.units, 0, c) >= 0 or self.charsmap.shortest(chr(c)) is not None:
            return ANY_WAY
        if not self.charsmap.begins(key, 1):
            return ALONE
        for other in range(128):
            key[1] = other
            if self.charsmap.begins(key, 2):
                return ANY_WAY
        return BESIDE_ASCII

    cdef size_t prefix(self, const uint8_t *text, size_t size, const uint8_t **new, size_t *new_size) noexcept nogil:
        """What the beginning of the text becomes; the length of that beginning."""
        cdef const cyg_trie_unit *units = self.kept.trie.units
        cdef int32_t node = 0
        cdef size_t at = 0, longest = 0
        cdef Py_ssize_t length = 0, place
        while at < size:
            node = cyg_trie_step(units, node, text[at])
            if node < 0:
                break
            at += 1
            if units[node].value >= 0 or self.word_by_word:
                longest = at
        if not longest:
            place = self.charsmap.find(<const char *> text, size, True, &length)
            if place >= 0:
                new[0] = <const uint8_t *> self.charsmap._texts + place
                new_size[0] = self.charsmap.text_length(place)
                return length
            longest = min(cyg_utf8_length(text[0]), size)
        new[0] = text
        new_size[0] = longest
        return longest

    cdef int put(self, cyg_text *out, const uint8_t *data, size_t size, size_t start, size_t end) noexcept nogil:
        """Appends a replacement, spaces escaped."""
        cdef size_t i, done = 0
        for i in range(size):
            if data[i] != 32 or not self.escape:
                continue
            if cyg_text_put(out, data + done, i - done, start, end) or cyg_text_put(out, self.space, self.space_size, start, end):
                return -1
            done = i + 1
        return cyg_text_put(out, data + done, size - done, start, end)

    cdef int rewrite(self, cyg_text *out, const uint8_t *text, size_t size) noexcept nogil:
        """Appends the normalised text. 0, or -1 out of memory."""
        cdef const uint8_t *new = text
        cdef size_t at = 0, length, new_size = 0, begin, end
        cdef bint after_space = self.squeeze
        if self.word_by_word:
            return self.rewrite_words(out, text, size)
        while self.squeeze and at < size:
            length = self.prefix(text + at, size - at, &new, &new_size)
            if new_size != 1 or new[0] != 32:
                break
            at += length
        if at == size:
            return 0
        begin = out.size
        if self.dummy and not self.suffix and self.put(out, <const uint8_t *> b" ", 1, at, at):
            return -1
        while at < size:
            end = at
            while end < size and self.reach[text[end]] != ANY_WAY:
                end += 1
            if end > at and end < size and text[end] >= 128 and self.reach[text[end - 1]] == BESIDE_ASCII:
                end -= 1
            if end > at:
                if cyg_text_copy(out, text + at, end - at, at):
                    return -1
                after_space = False
                at = end
                continue
            if text[at] == 32 and (self.space_reach == ALONE or (self.space_reach == BESIDE_ASCII and (at + 1 == size or text[at + 1] < 128))):
                if not after_space and cyg_text_put(out, self.space, self.space_size, at, at + 1):
                    return -1
                after_space = self.squeeze
                at += 1
                continue
            length = self.prefix(text + at, size - at, &new, &new_size)
            while after_space and new_size and new[0] == 32:
                new += 1
                new_size -= 1
            if new_size:
                if self.put(out, new, new_size, at, at + length):
                    return -1
                after_space = self.squeeze and new[new_size - 1] == 32
            at += length
        out.source_end = self.trim(out, begin, at) if self.squeeze else at
        if self.dummy and self.suffix:
            return self.put(out, <const uint8_t *> b" ", 1, out.source_end, out.source_end)
        return 0

    cdef int rewrite_words(self, cyg_text *out, const uint8_t *text, size_t size) noexcept nogil:
        """rewrite() in llama.cpp's way."""
        cdef const uint8_t *new = text
        cdef size_t at = 0, length, new_size = 0, i
        cdef bint in_word = False, begun = False
        while at < size:
            length = self.prefix(text + at, size - at, &new, &new_size)
            for i in range(new_size):
                if new[i] != 32 and not in_word:
                    in_word = True
                    if self.squeeze or (self.dummy and not self.suffix and not begun):
                        if self.put(out, <const uint8_t *> b" ", 1, at, at + length):
                            return -1
                        begun = True
                elif new[i] == 32:
                    in_word = False
                    if self.squeeze:
                        continue
                if self.put(out, new + i, 1, at, at + length):
                    return -1
            at += length
        out.source_end = at
        if self.dummy and self.suffix:
            return self.put(out, <const uint8_t *> b" ", 1, at, at)
        return 0

    cdef size_t trim(self, cyg_text *out, size_t begin, size_t source_end) noexcept nogil:
        """Takes space signs off the end; where the source of what is left ends."""
        cdef size_t size = out.size
        if self.escape:
            while size >= begin + 3 and memcmp(out.bytes + size - 3, SPACE_SIGN, 3) == 0:
                size -= 3
        else:
            while size > begin and out.bytes[size - 1] == 32:
                size -= 1
        if size < out.size and out.aligned:
            source_end = out.origins[2 * size]
        out.size = size
        return source_end

    def normalize(self, str text):
        """The normalised text and, for each of its characters, start and end of its source in characters.

        As in the library, a character ends where the source of the next one begins: all of what one source becomes is empty but the last of it.
        """
        cdef bytes data = text.encode()
        cdef cyg_text out
        cdef bytes result
        cdef list starts = []
        cdef list chars = []
        cdef Py_ssize_t i, count = 0
        for i in range(len(data)):
            chars.append(count)
            count += i + 1 == len(data) or (<uint8_t> data[i + 1] & 0xC0) != 0x80
        chars.append(count)
        memset(&out, 0, sizeof(out))
        out.aligned = True
        try:
            if self.rewrite(&out, <const uint8_t *> <const char *> data, len(data)):
                raise MemoryError
            result = out.bytes[:out.size] if out.size else b""
            for i in range(<Py_ssize_t> out.size):
                if (out.bytes[i] & 0xC0) != 0x80:
                    starts.append(chars[out.origins[2 * i]])
            starts.append(chars[out.source_end])
            return result.decode("utf-8", "replace"), list(zip(starts, starts[1:], strict=False))
        finally:
            cyg_text_free(&out)


cdef class CharacterSegmenter(Segmenter):
    """Every character a piece (and every user-defined piece, the longest first).

    Parameters
    ----------
    pieces, ids : sequences of str and int
    frozen : sequence of str
        User-defined pieces.
    unknown, byte_ids
        As in Segmenter.
    """

    cdef Trie names
    cdef Trie frozen

    def __init__(self, pieces, ids, frozen, unknown, byte_ids=None):
        Segmenter.__init__(self, unknown, byte_ids)
        frozen = list(frozen)
        self.names = Trie(pieces, ids)
        self.frozen = Trie(frozen, range(len(frozen)))

    cdef int segment(self, Scratch space, const uint8_t *text, size_t size) noexcept nogil:
        cdef const cyg_trie_unit *units = self.frozen.trie.units
        cdef size_t at = 0, end, longest
        cdef int32_t node
        cdef int failed = 0
        while at < size and not failed:
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
            if not longest:
                longest = min(cyg_utf8_length(text[at]), size - at)
            failed = self.put(space, text, cyg_trie_find(&self.names.trie, <const char *> text + at, longest), at, at + longest)
            at += longest
        return failed if failed else self.finish(space, text)


cdef class WordSegmenter(Segmenter):
    """Every word a piece; a word begins at each space sign."""

    cdef Trie names

    def __init__(self, pieces, ids, unknown, byte_ids=None):
        Segmenter.__init__(self, unknown, byte_ids)
        self.names = Trie(pieces, ids)

    cdef int segment(self, Scratch space, const uint8_t *text, size_t size) noexcept nogil:
        cdef size_t start = 0, end
        cdef int failed = 0
        while start < size and not failed:
            end = start + 1
            while end < size and (size - end < 3 or memcmp(text + end, SPACE_SIGN, 3) != 0):
                end += 1
            failed = self.put(space, text, cyg_trie_find(&self.names.trie, <const char *> text + start, end - start), start, end)
            start = end
        return failed if failed else self.finish(space, text)


cdef class SentencePieceLane(Lane):
    """Normalization and segmentation of whole texts."""

    cdef Rewriter rewriter
    cdef Segmenter segmenter

    def __init__(self, Rewriter rewriter, Segmenter segmenter):
        self.rewriter = rewriter
        self.segmenter = segmenter

    cpdef Workspace workspace(self):
        return self.segmenter.scratch()

    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        (<Scratch> space).text.size = 0
        if self.rewriter.rewrite(&(<Scratch> space).text, text, length):
            return -1
        return self.segmenter.segment(<Scratch> space, (<Scratch> space).text.bytes, (<Scratch> space).text.size)
