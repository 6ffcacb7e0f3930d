"""WordPiece (Schuster and Nakajima 2012; BERT): greedy longest match in a trie, and the lane that goes over UTF-8 text in one pass."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from cygnet._core._lane cimport Lane, Workspace, cyg_ids, cyg_ids_push
from cygnet._core._normalize cimport Step, Stretch, stretch_of
from cygnet._core._segmenter cimport Scratch, cyg_text, cyg_text_free, cyg_text_put
from cygnet._core._trie cimport cyg_trie_step, cyg_trie_unit, cyg_trie_walk
from cygnet._core._unicode cimport (
    CYG_IS_MARK, CYG_IS_OTHER, CYG_IS_PUNCTUATION, CYG_IS_SYMBOL, cyg_combining_class, cyg_decompose, cyg_is_bert_accent, cyg_is_bert_control, cyg_is_bert_ideograph, cyg_is_bert_punctuation,
    cyg_is_space, cyg_lower, cyg_unicode_is,
)

from cygnet._core._vocabulary cimport Vocabulary

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_read(const uint8_t *at, uint32_t *code)
    size_t cyg_utf8_write(uint8_t *at, uint32_t code)

cdef extern from "unicode.h" nogil:
    """
    #define CYG_CONTROLS (CYG_BIT(CYG_CC) | CYG_BIT(CYG_CF) | CYG_BIT(CYG_CO))
    """
    uint32_t CONTROLS "CYG_CONTROLS"

cdef const char *SPACE_SIGN = b"\xe2\x96\x81"

cdef enum:
    NO_UNKNOWN = -2
    NO_CONTINUATION = -1
    OTHER_WAY = 1


cdef class WordPieces:
    """The vocabulary as a trie and the matching of one word.

    Parameters
    ----------
    vocabulary : Vocabulary
    unk_token : str
    prefix : str
        What the tokens that continue a word begin with.
    max_chars : int
        Longer words are unknown.
    """

    def __init__(self, Vocabulary vocabulary, str unk_token, str prefix, size_t max_chars):
        cdef bytes start = prefix.encode()
        unknown = vocabulary.id_of(unk_token)
        self.tokens = vocabulary.trie
        self.unknown = NO_UNKNOWN if unknown is None else unknown
        self.continuation = cyg_trie_walk(&self.tokens.trie, 0, start, len(start))
        self.max_chars = max_chars

    cdef int match(self, cyg_ids *ids, const uint8_t *word, size_t size, size_t *ends) noexcept nogil:
        """Appends the pieces of a word of at most max_chars characters; where ends is given, each piece's end goes there.

        0 for success, 1 where no pieces cover the word (nothing is appended), -1 out of memory.
        """
        cdef const cyg_trie_unit *units = self.tokens.trie.units
        cdef size_t start = 0, i, end, before = ids.size, count = 0
        cdef int32_t node = 0, found
        while start < size:
            found = -1
            end = start
            i = start
            while i < size:
                node = cyg_trie_step(units, node, word[i])
                if node < 0:
                    break
                i += 1
                if units[node].value >= 0:
                    found = units[node].value
                    end = i
            if found < 0:
                ids.size = before
                return 1
            if cyg_ids_push(ids, found):
                return -1
            if ends != NULL:
                ends[count] = end
                count += 1
            start = end
            node = self.continuation
            if node == NO_CONTINUATION and start < size:
                ids.size = before
                return 1
        return 0

    def pieces(self, str text):
        """(id, start, end) of the pieces of a word, in characters; None where the word is unknown."""
        cdef bytes word = text.encode()
        cdef Py_ssize_t size = len(word), i, at = 0, chars = 0, start
        cdef cyg_ids ids
        cdef size_t *ends
        cdef int failed
        cdef list out = []
        if <size_t> len(text) > self.max_chars:
            return None
        ids.data, ids.size, ids.capacity = NULL, 0, 0
        ends = <size_t *> malloc((size + 1) * sizeof(size_t))
        failed = -1 if ends == NULL else self.match(&ids, <const uint8_t *> <const char *> word, size, ends)
        if failed == 0:
            for i in range(<Py_ssize_t> ids.size):
                start = chars
                while at < <Py_ssize_t> ends[i]:
                    chars += (<uint8_t> word[at] & 0xC0) != 0x80
                    at += 1
                out.append((ids.data[i], start, chars))
        free(ids.data)
        free(ends)
        if failed < 0:
            raise MemoryError
        return None if failed else out


cdef class GreedyLane(Lane):
    """A whole text as one word of any length: the longest token again and again."""

    cdef WordPieces pieces

    def __init__(self, WordPieces pieces):
        self.pieces = pieces

    cpdef Workspace workspace(self):
        return Workspace()

    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        return self.pieces.match(&space.ids, text, length, NULL)


cdef class WordSpace(Workspace):
    """Adds the bytes of the word that is being read, and two buffers for the steps of a normalizer."""

    def __cinit__(self, size_t room):
        self.word = <uint8_t *> malloc(room)
        self.room = room
        if self.word == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.word)
        cyg_text_free(&self.text)
        cyg_text_free(&self.spare)


cdef enum Kind:
    LETTER
    SPACE
    PUNCTUATION
    DROPPED
    WIDE


cdef class BertLane(Lane):
    """BertNormalizer, BertPreTokenizer and WordPiece in one pass over the bytes.

    Other normalizers may come before, as steps. Text whose accents would have to be put in canonical order is left to the exact way; so is an
    unknown word where the vocabulary has no unknown token.
    """

    cdef WordPieces pieces
    cdef Step steps
    cdef bint clean, ideographs, accents, lower
    cdef uint8_t[256] kind
    cdef uint8_t[256] letter

    def __init__(self, WordPieces pieces, Step steps, bint clean_text, bint handle_chinese_chars, bint strip_accents, bint lowercase):
        cdef int c
        self.pieces, self.steps = pieces, steps
        self.clean, self.ideographs, self.accents, self.lower = clean_text, handle_chinese_chars, strip_accents, lowercase
        for c in range(256):
            self.letter[c] = <uint8_t> (cyg_lower(c) if lowercase and c < 128 else c)
            if c >= 128:
                self.kind[c] = WIDE
            elif clean_text and (c == 0 or cyg_is_bert_control(c)):
                self.kind[c] = DROPPED
            elif cyg_is_space(c):
                self.kind[c] = SPACE
            elif cyg_is_bert_punctuation(c):
                self.kind[c] = PUNCTUATION
            else:
                self.kind[c] = LETTER

    cpdef Workspace workspace(self):
        return WordSpace(4 * self.pieces.max_chars + 8)

    cdef int flush(self, Workspace space, size_t size, size_t chars) noexcept nogil:
        """Ends the word of so many bytes and characters."""
        cdef int failed = 1
        if chars == 0:
            return 0
        if chars <= self.pieces.max_chars:
            failed = self.pieces.match(&space.ids, (<WordSpace> space).word, size, NULL)
        if failed <= 0:
            return failed
        if self.pieces.unknown < 0:
            return OTHER_WAY
        return cyg_ids_push(&space.ids, self.pieces.unknown)

    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        cdef Stretch stretch = stretch_of(text, length)
        cdef int failed
        if self.steps is None:
            return self.words_of(space, text, length)
        failed = self.steps.run(&stretch, &(<WordSpace> space).text, &(<WordSpace> space).spare)
        return failed if failed else self.words_of(space, stretch.bytes, stretch.size)

    cdef int words_of(self, Workspace space, const uint8_t *text, size_t length) noexcept nogil:
        cdef uint8_t *word = (<WordSpace> space).word
        cdef size_t at = 0, size = 0, chars = 0, max_chars = self.pieces.max_chars
        cdef uint8_t byte, kind
        cdef int failed
        while at < length:
            byte = text[at]
            kind = self.kind[byte]
            if kind == LETTER:
                if chars < max_chars:
                    word[size] = self.letter[byte]
                    size += 1
                chars += 1
                at += 1
            elif kind == SPACE:
                failed = self.flush(space, size, chars)
                if failed:
                    return failed
                size = chars = 0
                at += 1
            elif kind == PUNCTUATION:
                failed = self.flush(space, size, chars)
                if failed == 0:
                    word[0] = byte
                    failed = self.flush(space, 1, 1)
                if failed:
                    return failed
                size = chars = 0
                at += 1
            elif kind == DROPPED:
                at += 1
            else:
                failed = self.wide(space, text, &at, &size, &chars)
                if failed:
                    return failed
        return self.flush(space, size, chars)

    cdef int wide(self, Workspace space, const uint8_t *text, size_t *at, size_t *size, size_t *chars) noexcept nogil:
        """One character outside ASCII."""
        cdef uint32_t code
        cdef uint32_t parts[18]
        cdef int i, count = 1, failed = 0
        cdef bint alone
        at[0] += cyg_utf8_read(text + at[0], &code)
        if self.clean and cyg_is_bert_control(code):
            return 0
        alone = self.ideographs and cyg_is_bert_ideograph(code)
        if alone:
            failed = self.flush(space, size[0], chars[0])
            size[0] = chars[0] = 0
        parts[0] = code
        if self.accents:
            count = cyg_decompose(code, False, parts)
        for i in range(count):
            if failed:
                return failed
            if self.accents:
                if cyg_is_bert_accent(parts[i]):
                    continue
                if cyg_combining_class(parts[i]):
                    return OTHER_WAY
            failed = self.put(space, parts[i], size, chars)
        if alone and not failed:
            failed = self.flush(space, size[0], chars[0])
            size[0] = chars[0] = 0
        return failed

    cdef int put(self, Workspace space, uint32_t code, size_t *size, size_t *chars) noexcept nogil:
        """One character after accents are off: lower-cased and added to the word, or the end of it."""
        cdef int failed = 0
        cdef bint punctuation = cyg_is_bert_punctuation(code)
        if self.lower and code == 0x130:
            failed = self.put(space, 0x69, size, chars)
            return failed if failed else self.put(space, 0x307, size, chars)
        if punctuation or cyg_is_space(code):
            failed = self.flush(space, size[0], chars[0])
            size[0] = chars[0] = 0
            if punctuation and not failed:
                failed = self.flush(space, cyg_utf8_write((<WordSpace> space).word, code), 1)
            return failed
        if chars[0] < self.pieces.max_chars:
            size[0] += cyg_utf8_write((<WordSpace> space).word + size[0], cyg_lower(code) if self.lower else code)
        chars[0] += 1
        return 0


cdef class BertWordsLane(Lane):
    """llama.cpp's words for BERT and WordPiece in one pass: of a decomposition the first character counts, a sign begins each word."""

    cdef WordPieces pieces
    cdef bint lower, accents
    cdef uint8_t[128] kind
    cdef uint8_t[128] letter

    def __init__(self, WordPieces pieces, bint lowercase, bint strip_accents):
        cdef int c
        self.pieces, self.lower, self.accents = pieces, lowercase, strip_accents
        for c in range(128):
            self.letter[c] = <uint8_t> (cyg_lower(c) if lowercase else c)
            if cyg_is_space(c):
                self.kind[c] = SPACE
            elif cyg_unicode_is(c, CYG_IS_OTHER):
                self.kind[c] = DROPPED
            elif cyg_unicode_is(c, CYG_IS_PUNCTUATION | CYG_IS_SYMBOL):
                self.kind[c] = PUNCTUATION
            else:
                self.kind[c] = LETTER

    cpdef Workspace workspace(self):
        return Scratch()

    cdef int flush(self, Workspace space) noexcept nogil:
        """Ends the word."""
        cdef cyg_text *word = &(<Scratch> space).text
        cdef int failed
        if word.size == 0:
            return 0
        failed = self.pieces.match(&space.ids, word.bytes, word.size, NULL)
        word.size = 0
        if failed <= 0:
            return failed
        return OTHER_WAY if self.pieces.unknown < 0 else cyg_ids_push(&space.ids, self.pieces.unknown)

    cdef int put(self, Workspace space, const uint8_t *letter, size_t size, bint alone) noexcept nogil:
        """Adds a character to the word, or makes a word of it."""
        cdef cyg_text *word = &(<Scratch> space).text
        cdef int failed = self.flush(space) if alone else 0
        if failed:
            return failed
        if word.size == 0 and cyg_text_put(word, <const uint8_t *> SPACE_SIGN, 3, 0, 0):
            return -1
        if cyg_text_put(word, letter, size, 0, 0):
            return -1
        return self.flush(space) if alone else 0

    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        cdef size_t at = 0
        cdef uint8_t kind
        cdef int failed = 0
        (<Scratch> space).text.size = 0
        while at < length and not failed:
            if text[at] >= 128:
                failed = self.wide(space, text, &at)
                continue
            kind = self.kind[text[at]]
            if kind == SPACE:
                failed = self.flush(space)
            elif kind != DROPPED:
                failed = self.put(space, &self.letter[text[at]], 1, kind == PUNCTUATION)
            at += 1
        return failed if failed else self.flush(space)

    cdef int wide(self, Workspace space, const uint8_t *text, size_t *at) noexcept nogil:
        """One character outside ASCII."""
        cdef uint32_t code = 0
        cdef uint32_t parts[18]
        cdef uint8_t letter[4]
        cdef bint alone
        at[0] += cyg_utf8_read(text + at[0], &code)
        if self.accents:
            cyg_decompose(code, False, parts)
            code = parts[0]
        if cyg_is_space(code):
            return self.flush(space)
        if code == 0xFFFD or (code and cyg_unicode_is(code, CONTROLS)) or (self.accents and cyg_unicode_is(code, CYG_IS_MARK)):
            return 0
        alone = cyg_unicode_is(code, CYG_IS_PUNCTUATION) or cyg_is_bert_ideograph(code) or (code < 127 and cyg_unicode_is(code, CYG_IS_SYMBOL))
        if self.lower:
            code = 0x69 if code == 0x130 else cyg_lower(code)
        return self.put(space, letter, cyg_utf8_write(letter, code), alone)
