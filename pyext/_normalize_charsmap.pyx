"""A SentencePiece character map as a step of a normalizer, applied as the tokenizers library does: to grapheme clusters, then to single characters."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from cygnet._core._charsmap cimport Charsmap
from cygnet._core._normalize cimport Step, Stretch, take
from cygnet._core._segmenter cimport cyg_text, cyg_text_put, cyg_text_slack
from cygnet._core._unicode cimport cyg_grapheme_begins, cyg_grapheme_state

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_read(const uint8_t *at, uint32_t *code)
    size_t cyg_utf8_length(uint8_t first)

cdef enum:
    SPECIAL = 255


@cython.final
cdef class CharsmapStep(Step):
    """A character map, which has rules."""

    cdef Charsmap charsmap
    # What an ASCII character becomes where that is one character; SPECIAL for all else.
    cdef uint8_t[256] becomes

    def __init__(self, Charsmap charsmap):
        cdef int c
        self.charsmap = charsmap
        for c in range(256):
            self.becomes[c] = self.single_byte(c)

    cdef uint8_t single_byte(self, int c):
        """What an ASCII character becomes under the map; a carriage return may be part of a cluster."""
        cdef Py_ssize_t length = 0, place
        cdef char key = <char> c
        if c >= 128 or c == 13:
            return SPECIAL
        place = self.charsmap.find(&key, 1, False, &length)
        if place < 0:
            return c
        return <uint8_t> self.charsmap._texts[place] if self.charsmap.text_length(place) == 1 else SPECIAL

    cdef int apply(self, Stretch *stretch, cyg_text *out) noexcept nogil:
        cdef size_t at = 0, size
        stretch.doubled = stretch.doubled or not self.keeps_front(stretch.bytes, stretch.size)
        while at < stretch.size:
            size = self.plain(out, stretch.bytes + at, stretch.size - at)
            if size == 0:
                size = self.clusters(out, stretch.bytes + at, stretch.size - at)
            if size == 0:
                return -1
            at += size
        take(stretch, out)
        return 0

    cdef bint keeps_front(self, const uint8_t *text, size_t size) noexcept nogil:
        """Whether the first character is a cluster alone and becomes one character."""
        cdef cyg_grapheme_state state
        cdef uint32_t code = 0
        cdef size_t length = cyg_utf8_read(text, &code)
        cdef Py_ssize_t place = self.charsmap.find_single(code, <const char *> text, length)
        memset(&state, 0, sizeof(state))
        cyg_grapheme_begins(&state, code)
        if length < size:
            cyg_utf8_read(text + length, &code)
            if not cyg_grapheme_begins(&state, code):
                return False
        return place < 0 or self.charsmap.text_length(place) == <Py_ssize_t> cyg_utf8_length(self.charsmap._texts[place])

    cdef size_t plain(self, cyg_text *out, const uint8_t *text, size_t length) noexcept nogil:
        """Appends what ASCII becomes, up to the next special character; the length of what was read."""
        cdef size_t at = 0
        cdef uint8_t new
        cdef uint8_t *place
        if cyg_text_slack(out, length):
            return 0
        place = out.bytes + out.size
        while at < length:
            new = self.becomes[text[at]]
            if new == SPECIAL:
                break
            place[at] = new
            at += 1
        # The last one before a character outside ASCII may be the base of a cluster.
        if at and at < length and text[at] >= 128:
            at -= 1
        out.size += at
        return at

    cdef int put(self, cyg_text *out, const uint8_t *part, size_t size) noexcept nogil:
        """Appends what the map makes of one cluster: looked up whole where it is short, then character by character."""
        cdef Py_ssize_t used = 0, place
        cdef size_t at = 0, step
        cdef uint32_t code = 0
        if size < 6:
            place = self.charsmap.find(<const char *> part, size, False, &used)
            if place >= 0:
                return cyg_text_put(out, <const uint8_t *> self.charsmap._texts + place, self.charsmap.text_length(place), 0, 0)
        while at < size:
            step = cyg_utf8_read(part + at, &code)
            place = self.charsmap.find_single(code, <const char *> part + at, step)
            if place >= 0:
                if cyg_text_put(out, <const uint8_t *> self.charsmap._texts + place, self.charsmap.text_length(place), 0, 0):
                    return -1
            elif cyg_text_put(out, part + at, step, 0, 0):
                return -1
            at += step
        return 0

    cdef size_t clusters(self, cyg_text *out, const uint8_t *text, size_t length) noexcept nogil:
        """Appends clusters up to where plain ASCII goes on; the length of what was read, 0 out of memory."""
        cdef cyg_grapheme_state state
        cdef size_t at = 0, begin = 0, same = 0, step
        cdef uint32_t code = 0, previous = 0
        cdef bint plain
        memset(&state, 0, sizeof(state))
        # same .. begin: clusters that stay as they are and are not yet copied.
        while True:
            step = cyg_utf8_read(text + at, &code) if at < length else 0
            if at > begin and (step == 0 or cyg_grapheme_begins(&state, code)):
                plain = at - begin == cyg_utf8_length(text[begin]) and self.charsmap.find_single(previous, <const char *> text + begin, at - begin) < 0
                if not plain:
                    if cyg_text_put(out, text + same, begin - same, 0, 0) or self.put(out, text + begin, at - begin):
                        return 0
                    same = at
                begin = at
                if step == 0 or (code < 128 and code != 13 and (at + 1 == length or text[at + 1] < 128)):
                    return 0 if cyg_text_put(out, text + same, at - same, 0, 0) else at
            elif at == 0:
                cyg_grapheme_begins(&state, code)
            previous = code
            at += step
