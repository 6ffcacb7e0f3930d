"""The lane of SentencePiece's Unigram models word by word: those seen before need no search.

SentencePiece sums scores over the whole text in single precision, so that the best way through a word may depend on all that comes before it. The
margin by which a way wins tells where it cannot: rounding moves a sum of n scores by at most n halves of the last place, and where that is too little
to turn the word's choices, the pieces are those found at the beginning of a text. The score itself is carried on exactly, piece by piece.
"""

from libc.float cimport FLT_MAX
from libc.math cimport fabs
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memchr, memcmp, memcpy

from cygnet._core._lane cimport Lane, Workspace, cyg_ids_push
from cygnet._core._segmenter cimport cyg_text_slack
from cygnet._core._sentencepiece cimport Rewriter
from cygnet._core._unigram cimport Node, UnigramSegmenter, UnigramSpace
from cygnet._core._word_cache cimport CYG_LONG_BYTES, CYG_WORD_SLACK, cyg_word, cyg_word_keep, cyg_word_locate, cyg_word_recall

cdef const char *SPACE_SIGN = b"\xe2\x96\x81"

cdef enum:
    BATCH = 32


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
    """Normalization, and segmentation of each word.

    Parameters
    ----------
    rewriter : Rewriter
    segmenter : UnigramSegmenter
        In single precision, its words apart.
    """

    cdef Rewriter rewriter
    cdef UnigramSegmenter segmenter

    def __init__(self, Rewriter rewriter, UnigramSegmenter segmenter):
        self.rewriter = rewriter
        self.segmenter = segmenter

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
            failed = self.resolve(space, batch, count, &score)
        return failed

    cdef int resolve(self, UnigramSpace space, const cyg_word *batch, size_t count, double *score) noexcept nogil:
        cdef size_t i, k, before
        cdef int found
        for i in range(count):
            before = space.ids.size
            found = self.known(space, &batch[i], score[0])
            if found < 0:
                return -1
            if found:
                for k in range(before, space.ids.size):
                    score[0] = <float> (score[0] + self.segmenter.scores[space.ids.data[k]])
                continue
            space.ids.size = before
            found = self.search(space, &batch[i], score)
            if found:
                return found
        return 0

    cdef int known(self, UnigramSpace space, const cyg_word *word, double score) noexcept nogil:
        """Appends the ids of a word whose way does not depend on the score before it. 1 if it did, 0 if not (ids are to be taken back), -1 out of memory."""
        cdef float margin
        cdef int found = cyg_word_recall(&space.words, word, &space.ids)
        if found == 0 and word.size <= CYG_LONG_BYTES:
            found = self.learn(space, word)
        if found <= 0:
            return found
        space.ids.size -= 1
        memcpy(&margin, &space.ids.data[space.ids.size], sizeof(margin))
        # Of two ways, each of at most so many additions, whose results are rounded by half of the last of 24 bits; and a little for the margin's own.
        return margin > 1.01 * word.size * (fabs(score) + word.size * self.segmenter.largest) / (1 << 23)

    cdef int learn(self, UnigramSpace space, const cyg_word *word) noexcept nogil:
        """Appends the ids of a word at the beginning of a text and the margin's bits, and keeps them; return value as of known()."""
        cdef size_t before = space.ids.size
        cdef Node *nodes = self.segmenter.nodes_for(space, word.size)
        cdef double margin
        cdef float rounded
        cdef int32_t bits
        if nodes == NULL:
            return -1
        if self.segmenter.find_best(nodes, word.bytes, word.size, 0, False):
            return 0
        # A margin of nothing, without ids, says that the word has to be searched for again.
        margin = self.segmenter.margin(nodes, word.bytes, word.size)
        rounded = <float> min(max(margin, 0), FLT_MAX)
        memcpy(&bits, &rounded, sizeof(bits))
        if margin > 0 and self.segmenter.emit_best(space, nodes, word.bytes, word.size) or cyg_ids_push(&space.ids, bits):
            return -1
        cyg_word_keep(&space.words, word, space.ids.data + before, space.ids.size - before)
        return 1

    cdef int search(self, UnigramSpace space, const cyg_word *word, double *score) noexcept nogil:
        """Appends the ids of a word after a score, which moves on; return value as of encode()."""
        cdef Node *nodes = self.segmenter.nodes_for(space, word.size)
        cdef int failed
        if nodes == NULL:
            return -1
        failed = self.segmenter.find_best(nodes, word.bytes, word.size, score[0], True)
        if failed:
            return failed
        score[0] = nodes[word.size].score
        return self.segmenter.emit_best(space, nodes, word.bytes, word.size)
