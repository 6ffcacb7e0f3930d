"""The lane of Unigram models in tokenizer.json: the steps of a normalizer, Metaspace's signs, Viterbi in each word or through the whole text."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memchr, memcmp

from cygnet._core._lane cimport Lane, Workspace
from cygnet._core._normalize cimport LEFT_TO_STAGES, Step, Stretch, stretch_of, with_slack
from cygnet._core._segmenter cimport cyg_text_put
from cygnet._core._unicode cimport cyg_is_space
from cygnet._core._unigram cimport UnigramSegmenter, UnigramSpace
from cygnet._core._unigram_words cimport CarriedWords
from cygnet._core._word_cache cimport CYG_WORD_SLACK, cyg_word, cyg_word_keep, cyg_word_locate, cyg_word_recall

cdef extern from "utf8.h" nogil:
    size_t cyg_utf8_read(const uint8_t *at, uint32_t *code)

cdef enum:
    BATCH = 32
    SPACE = 32

cdef enum Prepend:
    NEVER
    FIRST
    ALWAYS

# How much of a text one search goes through: a word, with nothing of what came before; a word, from the score of those before it; all of it.
cdef enum Search:
    EACH_WORD
    WORD_BY_WORD
    WHOLE_TEXT

PREPEND_SCHEMES = {"never": NEVER, "first": FIRST, "always": ALWAYS}


@cython.final
cdef class UnigramLane(Lane):
    """Text to ids for the usual stages around Unigram.

    Parameters
    ----------
    segmenter : UnigramSegmenter
    steps : Step or None
        The normalizer.
    split_white_space : bool
        Words are cut at any white space first, which goes.
    sign : str
        Metaspace's replacement; without Metaspace what words begin with.
    spaces_are_signs : bool
        There is a Metaspace.
    prepend : {"never", "first", "always"}
        The sign begins every stretch of text (every word with split_white_space).
    cut : bool
        Signs begin words, each of which is searched through alone; else all of a stretch is at once.
    words_apart : bool
        The whole text can be searched through word by word; see CarriedWords.
    """

    cdef UnigramSegmenter segmenter
    cdef Step steps
    cdef CarriedWords words
    cdef bint split_white_space, spaces_are_signs, signs_end_words
    cdef Prepend prepend
    cdef Search search
    cdef uint8_t[4] sign
    cdef size_t sign_size
    # Whether a byte may end a word.
    cdef uint8_t[256] ends

    def __init__(
        self, UnigramSegmenter segmenter, Step steps, *, bint split_white_space, str sign, bint spaces_are_signs, str prepend, bint cut, bint words_apart
    ):
        cdef bytes encoded = sign.encode()
        cdef int c
        self.segmenter, self.steps = segmenter, steps
        self.split_white_space, self.spaces_are_signs, self.prepend = split_white_space, spaces_are_signs, PREPEND_SCHEMES[prepend]
        self.search = EACH_WORD if cut or split_white_space else WORD_BY_WORD if words_apart else WHOLE_TEXT
        self.signs_end_words = cut or not split_white_space
        self.words = CarriedWords(segmenter, sign)
        self.sign_size = len(encoded)
        for c in range(len(encoded)):
            self.sign[c] = encoded[c]
        for c in range(256):
            self.ends[c] = c == self.sign[0] or (spaces_are_signs and c == SPACE)
            self.ends[c] |= split_white_space and (c == SPACE or 9 <= c <= 13 or c in (0xC2, 0xE1, 0xE2, 0xE3))

    cpdef Workspace workspace(self):
        return UnigramSpace()

    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        return self.ids_of(<UnigramSpace> space, text, length, first)

    cdef int ids_of(self, UnigramSpace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        cdef Stretch stretch = stretch_of(text, length)
        cdef bint prepend = self.prepend == ALWAYS or (self.prepend == FIRST and first)
        cdef int failed
        if self.steps is not None:
            failed = self.steps.run(&stretch, &space.text, &space.spare)
            if failed:
                return failed
        if stretch.size == 0:
            return 0
        if self.prepend == FIRST and not stretch.begins:
            # What came first in the text is gone, or something else that stands for it is left: the stages know.
            if stretch.doubled and first:
                return LEFT_TO_STAGES
            prepend = False
        if self.search == WHOLE_TEXT:
            return self.segment_whole(space, stretch.bytes, stretch.size, prepend)
        if with_slack(&stretch, &space.text, &space.spare, CYG_WORD_SLACK):
            return -1
        return self.words_of(space, stretch.bytes, stretch.size, prepend)

    cdef int segment_whole(self, UnigramSpace space, const uint8_t *text, size_t size, bint prepend) noexcept nogil:
        """Appends the ids of a text that one search goes through."""
        cdef size_t done = 0, end
        cdef const uint8_t *found
        if not self.spaces_are_signs:
            return self.segmenter.segment(space, text, size)
        space.word.size = 0
        if prepend and not self.is_sign(text, size) and cyg_text_put(&space.word, self.sign, self.sign_size, 0, 0):
            return -1
        while done < size:
            found = <const uint8_t *> memchr(text + done, SPACE, size - done)
            end = size if found == NULL else found - text
            if cyg_text_put(&space.word, text + done, end - done, 0, 0):
                return -1
            if end < size and cyg_text_put(&space.word, self.sign, self.sign_size, 0, 0):
                return -1
            done = end + 1
        return self.segmenter.segment(space, space.word.bytes, space.word.size)

    # Words

    cdef size_t is_sign(self, const uint8_t *at, size_t left) noexcept nogil:
        """Length of the space or sign that begins here, or 0."""
        if at[0] == SPACE and self.spaces_are_signs:
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

    cdef bint ends_word(self, const uint8_t *at, size_t left) noexcept nogil:
        return (self.signs_end_words and self.is_sign(at, left)) or self.is_gap(at)

    cdef int words_of(self, UnigramSpace space, const uint8_t *text, size_t size, bint prepend) noexcept nogil:
        """Appends the ids of all words, a batch at a time: their places in the tables are asked for before they are read."""
        cdef cyg_word[BATCH] batch
        cdef size_t at = 0, step, count = 0
        cdef bint fresh = True
        cdef double score = 0
        cdef int failed = 0
        while at < size and not failed:
            # fresh: a stretch of its own begins here, to which the sign is prepended.
            step = self.is_gap(text + at)
            if step:
                at += step
                fresh = True
                continue
            step = self.is_sign(text + at, size - at)
            batch[count].mark = step > 0 or (fresh and prepend)
            fresh = False
            at += step
            batch[count].bytes = text + at
            while at < size and not (self.ends[text[at]] and self.ends_word(text + at, size - at)):
                at += 1
            batch[count].size = text + at - batch[count].bytes
            cyg_word_locate(&space.words, &batch[count])
            count += 1
            if count == BATCH:
                failed = self.resolve(space, batch, count, &score)
                count = 0
        return failed if failed else self.resolve(space, batch, count, &score)

    cdef int resolve(self, UnigramSpace space, const cyg_word *batch, size_t count, double *score) noexcept nogil:
        cdef size_t i
        cdef int found
        if self.search == WORD_BY_WORD:
            return self.words.resolve(space, batch, count, score)
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
        cdef size_t before = space.ids.size, size = 0
        cdef const uint8_t *text = self.words.spelled(space, word, &size)
        cdef int failed = -1 if text == NULL else self.segmenter.segment(space, text, size)
        if not failed:
            cyg_word_keep(&space.words, word, space.ids.data + before, space.ids.size - before)
        return failed
