"""Unigram over whole texts, word by word: those seen before need no search.

The scores of a way are summed over the whole text, in the precision of the library that is followed, so that the best way through a word may depend on all that comes
before it. The margin by which a way wins tells where it cannot: rounding moves a sum of n scores by at most n halves of the last place, and where that is too
little to turn the word's choices, the pieces are those found at the beginning of a text. The score itself is carried on exactly, step by step. Where the margin
is too small (two ways of equal score have none) the word is searched through again, from the score at hand.

This holds where words are apart: no piece has a sign but in front, so that every way passes the beginning of each word, and the sign alone is a piece, so that no unknown
stretch reaches from one word into the next.
"""

from libc.float cimport FLT_MAX
from libc.math cimport fabs
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr, memcmp, memcpy

from cygnet._core._lane cimport Lane, Workspace, cyg_ids_push
from cygnet._core._segmenter cimport cyg_text_put, cyg_text_slack
from cygnet._core._sentencepiece cimport Rewriter
from cygnet._core._unigram cimport Node, UnigramSegmenter, UnigramSpace
from cygnet._core._word_cache cimport CYG_LONG_BYTES, CYG_WORD_SLACK, cyg_word, cyg_word_keep, cyg_word_locate, cyg_word_recall

cdef const char *SPACE_SIGN = b"\xe2\x96\x81"

cdef enum:
    BATCH = 32


cdef class CarriedWords:
    """The segmentation of one word after another from the score of those before.

    Parameters
    ----------
    segmenter : UnigramSegmenter
        Its words apart.
    sign : str
        What stands before the bytes of a marked word.
    """

    def __init__(self, UnigramSegmenter segmenter, str sign=""):
        self.segmenter = segmenter
        self.sign = sign.encode()
        self.sign_bytes, self.sign_size = <const uint8_t *> <const char *> self.sign, len(self.sign)
        # In double precision the margin has errors of the same size itself.
        self.rounding = 1.01 / (1 << 23) if segmenter.single else 2.02 / (<long long> 1 << 52)

    cdef int resolve(self, UnigramSpace space, const cyg_word *batch, size_t count, double *score) noexcept nogil:
        """Appends the ids of located words; the score moves on. 0, 1 where an unknown piece is needed and there is none, -1 out of memory."""
        cdef size_t i, before
        cdef int found
        for i in range(count):
            before = space.ids.size
            found = self.known(space, &batch[i], score)
            if found < 0:
                return -1
            if found == 0:
                space.ids.size = before
                found = self.search(space, &batch[i], score)
                if found:
                    return found
        return 0

    cdef int known(self, UnigramSpace space, const cyg_word *word, double *score) noexcept nogil:
        """Appends the ids of a word whose way does not depend on the score before it. 1 if it did, 0 if not (ids are to be taken back), -1 out of memory."""
        cdef size_t k, count, before = space.ids.size, size = word.size + (self.sign_size if word.mark else 0)
        cdef const double *scores = self.segmenter.scores
        cdef int32_t *steps
        cdef double sum
        cdef float margin
        cdef int found = cyg_word_recall(&space.words, word, &space.ids)
        if found == 0 and word.size <= CYG_LONG_BYTES:
            found = self.learn(space, word)
        if found <= 0:
            return found
        space.ids.size -= 1
        memcpy(&margin, &space.ids.data[space.ids.size], sizeof(margin))
        if not fabs(margin) > self.rounding * size * (fabs(score[0]) + size * self.segmenter.largest):
            return 0
        steps = space.ids.data + before
        count = space.ids.size - before
        if margin < 0:
            space.ids.size -= 1
            count = space.ids.data[space.ids.size]
            space.ids.size -= count
            steps = space.ids.data + space.ids.size
        for k in range(count):
            sum = score[0] + (self.segmenter.unknown_score if steps[k] < 0 else scores[steps[k]])
            score[0] = <float> sum if self.segmenter.single else sum
        return 1

    cdef int learn(self, UnigramSpace space, const cyg_word *word) noexcept nogil:
        """Appends what is kept of a word: its ids at the beginning of a text, and the margin's bits. Return value as of known().

        Where an unknown piece is among them, which says nothing of the scores, the steps of the way and their number come before a negative margin.
        """
        cdef size_t before = space.ids.size, size = 0, i
        cdef const uint8_t *text = self.spelled(space, word, &size)
        cdef Node *nodes = self.segmenter.nodes_for(space, size)
        cdef double margin
        cdef float rounded
        cdef int32_t bits
        cdef int count
        if nodes == NULL or text == NULL:
            return -1
        if self.segmenter.find_best(nodes, text, size, 0, False):
            return 0
        margin = self.segmenter.margin(nodes, size)
        rounded = <float> min(margin, FLT_MAX) if margin > 0 else 0
        # A margin of nothing, without ids, says that the word has to be searched for again.
        if rounded > 0:
            if self.segmenter.emit_best(space, nodes, text, size):
                return -1
            if self.segmenter.passes_unknown(nodes, size):
                count = self.segmenter.push_way(space, nodes, text, size)
                if count < 0 or cyg_ids_push(&space.ids, count):
                    return -1
                rounded = -rounded
        memcpy(&bits, &rounded, sizeof(bits))
        if cyg_ids_push(&space.ids, bits):
            return -1
        cyg_word_keep(&space.words, word, space.ids.data + before, space.ids.size - before)
        return 1

    cdef int search(self, UnigramSpace space, const cyg_word *word, double *score) noexcept nogil:
        """Appends the ids of a word after a score, which moves on; return value as of resolve()."""
        cdef size_t size = 0
        cdef const uint8_t *text = self.spelled(space, word, &size)
        cdef Node *nodes = self.segmenter.nodes_for(space, size)
        cdef int failed
        if nodes == NULL or text == NULL:
            return -1
        failed = self.segmenter.find_best(nodes, text, size, score[0], self.segmenter.single)
        if failed:
            return failed
        score[0] = nodes[size].score
        return self.segmenter.emit_best(space, nodes, text, size)

    cdef const uint8_t *spelled(self, UnigramSpace space, const cyg_word *word, size_t *size) noexcept nogil:
        """The bytes of a word with its sign; NULL out of memory."""
        size[0] = word.size
        if not word.mark:
            return word.bytes
        space.word.size = 0
        if cyg_text_put(&space.word, self.sign_bytes, self.sign_size, 0, 0) or cyg_text_put(&space.word, word.bytes, word.size, 0, 0):
            return NULL
        size[0] = space.word.size
        return space.word.bytes


cdef size_t word_end(const uint8_t *text, size_t at, size_t size) noexcept nogil:
    """Where the next space sign after the first byte begins."""
    cdef const uint8_t *found
    at += 1
    while at + 3 <= size:
        found = <const uint8_t *> memchr(text + at, 0xE2, size - at - 2)
        if found == NULL:
            return size
        at = found - text
        if memcmp(found, SPACE_SIGN, 3) == 0:
            return at
        at += 1
    return size


cdef class UnigramWordsLane(Lane):
    """SentencePiece's normalization, and segmentation of each word.

    Parameters
    ----------
    rewriter : Rewriter
    segmenter : UnigramSegmenter
        In single precision, its words apart.
    """

    cdef Rewriter rewriter
    cdef CarriedWords words

    def __init__(self, Rewriter rewriter, UnigramSegmenter segmenter):
        self.rewriter = rewriter
        self.words = CarriedWords(segmenter)

    cpdef Workspace workspace(self):
        return UnigramSpace()

    cdef int encode(self, Workspace space, const uint8_t *text, size_t length, bint first) noexcept nogil:
        (<UnigramSpace> space).text.size = 0
        if self.rewriter.rewrite(&(<UnigramSpace> space).text, text, length) or cyg_text_slack(&(<UnigramSpace> space).text, CYG_WORD_SLACK):
            return -1
        return self.words_of(<UnigramSpace> space)

    cdef int words_of(self, UnigramSpace space) noexcept nogil:
        """Appends the ids of the normalised text, a batch of words at a time: their places in the tables are asked for before they are read."""
        cdef cyg_word[BATCH] batch
        cdef size_t at = 0, end, count
        cdef double score = 0
        cdef int failed = 0
        while at < space.text.size and not failed:
            count = 0
            while at < space.text.size and count < BATCH:
                end = word_end(space.text.bytes, at, space.text.size)
                batch[count].bytes = space.text.bytes + at
                batch[count].size = end - at
                batch[count].mark = False
                cyg_word_locate(&space.words, &batch[count])
                count += 1
                at = end
            failed = self.words.resolve(space, batch, count, &score)
        return failed
