"""The lane of Unigram models in tokenizer.json: a character map over grapheme clusters, space rules, Metaspace words, Viterbi in each."""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memcmp, memset

from cygnet._core._charsmap cimport Charsmap
from cygnet._core._lane cimport Lane, Workspace
from cygnet._core._segmenter cimport Scratch, cyg_text, cyg_text_copy, cyg_text_put, cyg_text_slack
from cygnet._core._unicode cimport cyg_grapheme_begins, cyg_grapheme_state, cyg_is_space
from cygnet._core._unigram cimport UnigramSegmenter, UnigramSpace
from cygnet._core._word_cache cimport CYG_WORD_SLACK, cyg_word, cyg_word_keep, cyg_word_locate, cyg_word_recall

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_read(const uint8_t *at, uint32_t *code)
    size_t cyg_utf8_length(uint8_t first)

cdef enum:
    BATCH = 32
    SPECIAL = 255


cdef class UnigramLane(Lane):
    """Text to ids for the usual stages around Unigram.

    Parameters
    ----------
    segmenter : UnigramSegmenter
    charsmap : Charsmap
        Empty where there is no Precompiled normalizer.
    squeeze : bool
        Runs of spaces become one.
    strip_left, strip_right : bool
    split_white_space : bool
        Words are cut at any white space first, which goes.
    sign : str
        Metaspace's replacement.
    prepend : bool
        The sign begins every stretch of text (every word with split_white_space).
    """

    cdef UnigramSegmenter segmenter
    cdef Charsmap charsmap
    cdef bint squeeze, strip_left, strip_right, split_white_space, prepend, mapped
    cdef uint8_t[4] sign
    cdef size_t sign_size
    # What an ASCII character becomes where that is one character; SPECIAL for all else.
    cdef uint8_t[256] becomes
    # Whether a byte may end a word.
    cdef uint8_t[256] ends

    def __init__(
        self, UnigramSegmenter segmenter, Charsmap charsmap, *, bint squeeze, bint strip_left, bint strip_right, bint split_white_space, str sign,
        bint prepend
    ):
        cdef bytes encoded = sign.encode()
        cdef int c
        self.segmenter, self.charsmap, self.squeeze, self.strip_left, self.strip_right = segmenter, charsmap, squeeze, strip_left, strip_right
        self.split_white_space, self.prepend = split_white_space, prepend
        self.mapped = not charsmap.empty
        self.sign_size = len(encoded)
        for c in range(len(encoded)):
            self.sign[c] = encoded[c]
        for c in range(256):
            self.becomes[c] = self.single_byte(c)
            self.ends[c] = c == 32 or c == self.sign[0] or (split_white_space and (9 <= c <= 13 or c in (0xC2, 0xE1, 0xE2, 0xE3)))

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

    cpdef Workspace workspace(self):
        return UnigramSpace()

    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        cdef cyg_text *out = &(<Scratch> space).text
        cdef size_t begin = 0
        out.size = 0
        if self.mapped:
            if self.map(out, text, length):
                return -1
        elif cyg_text_copy(out, text, length, 0):
            return -1
        if self.strip_left:
            begin = self.leading(out)
        if self.strip_right:
            self.trim(out, begin)
        if cyg_text_slack(out, CYG_WORD_SLACK):
            return -1
        return self.words_of(<UnigramSpace> space, out.bytes + begin, out.size - begin)

    # Normalization

    cdef int map(self, cyg_text *out, const uint8_t *text, size_t length) noexcept nogil:
        """Appends the text with the character map applied."""
        cdef size_t at = 0, size
        while at < length:
            size = self.plain(out, text + at, length - at)
            if size == 0:
                size = self.clusters(out, text + at, length - at)
            if size == 0:
                return -1
            at += size
        return 0

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

    cdef size_t leading(self, cyg_text *out) noexcept nogil:
        """Bytes of white space at the beginning."""
        cdef size_t at = 0, step
        cdef uint32_t code = 0
        while at < out.size:
            step = cyg_utf8_read(out.bytes + at, &code)
            if not cyg_is_space(code):
                break
            at += step
        return at

    cdef void trim(self, cyg_text *out, size_t begin) noexcept nogil:
        """Takes white space off the end."""
        cdef size_t at
        cdef uint32_t code = 0
        while out.size > begin:
            at = out.size - 1
            while at > begin and (out.bytes[at] & 0xC0) == 0x80:
                at -= 1
            cyg_utf8_read(out.bytes + at, &code)
            if not cyg_is_space(code):
                break
            out.size = at

    # Words

    cdef size_t is_sign(self, const uint8_t *at, size_t left) noexcept nogil:
        """Length of the space or sign that begins here, or 0."""
        if at[0] == 32:
            return 1
        return self.sign_size if left >= self.sign_size and memcmp(at, self.sign, self.sign_size) == 0 else 0

    cdef size_t is_gap(self, const uint8_t *at) noexcept nogil:
        """Length of the white space that begins here, where words are cut at it, or 0."""
        cdef uint32_t code = 0
        cdef size_t step
        if not self.split_white_space:
            return 0
        step = cyg_utf8_read(at, &code)
        return step if cyg_is_space(code) else 0

    cdef int words_of(self, UnigramSpace space, const uint8_t *text, size_t size) noexcept nogil:
        """Appends the ids of all words, a batch at a time: their places in the tables are asked for before they are read."""
        cdef cyg_word[BATCH] batch
        cdef size_t at = 0, step, count = 0
        cdef bint fresh = True
        cdef int failed = 0
        while at < size and not failed:
            # fresh: a stretch of its own begins here, to which the sign is prepended.
            step = self.is_gap(text + at)
            if step:
                at += step
                fresh = True
                continue
            step = self.is_sign(text + at, size - at)
            batch[count].mark = step > 0 or (fresh and self.prepend)
            fresh = False
            at += step
            while self.squeeze and at < size and text[at] == 32 and text[at - 1] == 32:
                at += 1
            batch[count].bytes = text + at
            while at < size and (not self.ends[text[at]] or not (self.is_sign(text + at, size - at) or self.is_gap(text + at))):
                at += 1
            batch[count].size = text + at - batch[count].bytes
            cyg_word_locate(&space.words, &batch[count])
            count += 1
            if count == BATCH:
                failed = self.resolve(space, batch, count)
                count = 0
        return failed if failed else self.resolve(space, batch, count)

    cdef int resolve(self, UnigramSpace space, const cyg_word *batch, size_t count) noexcept nogil:
        cdef size_t i
        cdef int found
        for i in range(count):
            found = cyg_word_recall(&space.words, &batch[i], &space.ids)
            if found == 0:
                found = self.segment(space, &batch[i])
            elif found > 0:
                found = 0
            if found:
                return found
        return 0

    cdef int segment(self, UnigramSpace space, const cyg_word *word) noexcept nogil:
        """Appends the ids of a word that was not seen before, and keeps them."""
        cdef size_t before = space.ids.size
        cdef int failed
        if not word.mark:
            failed = self.segmenter.segment(space, word.bytes, word.size)
        else:
            space.word.size = 0
            if cyg_text_put(&space.word, self.sign, self.sign_size, 0, 0) or cyg_text_put(&space.word, word.bytes, word.size, 0, 0):
                return -1
            failed = self.segmenter.segment(space, space.word.bytes, space.word.size)
        if not failed:
            cyg_word_keep(&space.words, word, space.ids.data + before, space.ids.size - before)
        return failed
